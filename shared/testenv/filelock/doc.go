// Package filelock lets processes of tests take turns at what only one of them
// may hold. It touches the files that it locks, and imports nothing of Weir.
package filelock
