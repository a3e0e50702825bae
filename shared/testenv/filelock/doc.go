// Package filelock is a lock between processes of tests. It touches the
// files that it locks, and imports nothing of Weir.
package filelock
