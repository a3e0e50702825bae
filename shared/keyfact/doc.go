// Package keyfact publishes facts about API keys on weir.ingest.v1, for every service that takes keys: it is the one writer of that topic.
// It may touch the publisher that it is given, and nothing else.
package keyfact
