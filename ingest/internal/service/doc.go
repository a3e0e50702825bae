// Package service holds the use cases of ingest: to take in a batch and to search what was taken in. It knows no HTTP, Kafka or SQL of
// its own: what it works with is given to it.
package service
