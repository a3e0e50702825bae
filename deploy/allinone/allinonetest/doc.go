// Package allinonetest runs the all-in-one process in tests. It may touch the
// process and its public API, and only tests import it.
package allinonetest
