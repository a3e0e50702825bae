// Package bus connects ingest to Kafka: it publishes batches, stores them by
// the log store, and follows accounts. It maps between the contract and the
// domain, and touches Postgres only through the transactions given to it.
package bus
