// Package contracttest replaces the other modules in the tests of one: it makes
// their topics, publishes what they would publish, and consumes what the module
// under test publishes. Only tests import it.
package contracttest
