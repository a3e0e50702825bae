// Package contracttest replaces the other modules in the tests of one:
// it creates their topics, publishes their events, and consumes those
// of the module under test. Only tests import it.
package contracttest
