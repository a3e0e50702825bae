// Package lease holds what the tests of one name share until the last
// of them ends: a broker, or the turn to inject faults. Only packages
// of testenv import it.
package lease
