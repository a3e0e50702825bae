// Package disk is the file system as the broker's log uses it, so that
// a log can also be in memory, and tests can let it fail. OS touches the
// machine's files, Memory none.
package disk
