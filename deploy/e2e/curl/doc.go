// Command curl stands in for curl in the test of the printed commands, on a machine that has none. It has the flags that those commands
// use, and no others.
package main
