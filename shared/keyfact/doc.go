// Package keyfact publishes facts about API keys on weir.ingest.v1, for every
// service that takes keys: it is the one writer of that topic. It may touch the
// publisher given to it, and nothing else.
package keyfact
