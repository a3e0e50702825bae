// Package allinonetest runs the all-in-one process in tests. It uses
// the process and its public API, and only tests import it.
package allinonetest
