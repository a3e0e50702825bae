// Package redis serves Redis where a machine has none: miniredis, behind a journal by which what it acknowledged survives
// that its process is killed. It is for tests: it has one user, speaks without TLS, and turns away commands that block.
package redis
