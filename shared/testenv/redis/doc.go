// Package redis serves Redis where a machine has none: miniredis, with
// a journal so that acknowledged writes survive a killed process. It is
// for tests: it has one user, no TLS, and refuses commands that block.
package redis
