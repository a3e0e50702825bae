// Package bus maps what grouping does to what Kafka carries: it
// consumes weir.logs.v1 and publishes weir.grouping.v1. It calls the
// service and owns the mapping to shared/contract.
package bus
