// Package filelock locks files between processes. It touches the files
// that it locks, and imports nothing of Weir.
package filelock
