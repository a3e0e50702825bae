// Package port lends ports of this machine to servers of tests. It touches them
// and the files by which it lends them, and imports filelock alone of Weir.
package port
