// Package eventstoretest is what every event store promises, as one suite that
// runs on each of them. Only tests import it.
package eventstoretest
