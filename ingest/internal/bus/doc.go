// Package bus connects ingest to Kafka: it publishes batches, keeps them by the log store, and follows accounts. It maps between the
// contract and the domain, and touches Postgres through the transactions that it is given alone.
package bus
