// Package bustest is what the tests of the bus's packages share:
// topics, databases, messages, effects that can be counted,
// networks that break. Only tests import it.
package bustest
