// Package bus consumes weir.logs.v1 and publishes weir.grouping.v1.
// It calls the service and owns the mapping to shared/contract.
package bus
