// Package bus consumes weir.logs.v1, weir.tenants.v1 and weir.outcomes.v1,
// and publishes weir.accounts.v1 and weir.ledger.v1. It calls the services and
// owns the mapping to shared/contract.
package bus
