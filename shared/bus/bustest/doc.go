// Package bustest is shared by the tests of the bus's packages:
// topics, databases, messages, countable effects, failing networks.
// Only tests import it.
package bustest
