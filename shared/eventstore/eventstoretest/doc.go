// Package eventstoretest tests the promises of every event store in one
// suite. Only tests import it.
package eventstoretest
