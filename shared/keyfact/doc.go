// Package keyfact publishes facts about API keys on weir.ingest.v1, for
// every service that takes keys: it is the only writer of that topic.
// It uses only the publisher given to it.
package keyfact
