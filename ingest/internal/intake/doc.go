// Package intake holds the use cases of ingest: accept a batch, and search. It has no HTTP, Kafka
// or SQL of its own: what it works with is given to it.
package intake
