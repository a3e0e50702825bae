// Package tracing traces a request by OpenTelemetry from its HTTP span
// through Kafka to each transaction that commits its records. Without
// an endpoint no span is made; spans hold routes, ids and numbers,
// never content, keys or texts of errors.
package tracing
