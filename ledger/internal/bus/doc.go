// Package bus maps what the ledger does to what Kafka carries: it consumes
// weir.logs.v1 and weir.tenants.v1 and publishes weir.accounts.v1 and
// weir.ledger.v1. It calls the service and owns the mapping to shared/contract.
package bus
