// Command size prints how large the tree is, by module, and what in it is
// larger or smaller than it should be. It reads only source files.
package main
