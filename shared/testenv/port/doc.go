// Package port reserves ports of this machine for servers of tests. It
// touches them and the files by which it reserves them, and imports of
// Weir only filelock.
package port
