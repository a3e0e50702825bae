// Package disk holds tests of faults below Weir: a full disk, a directory that
// can't be written to, a log that lost its tail, a child that died. They start
// processes of `weir run`, mount file systems, and need root (make test-disk).
package disk
