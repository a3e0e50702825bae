// Package tracing follows a request by OpenTelemetry from its HTTP span
// through Kafka to each transaction that commits its records. Without an
// endpoint no span is made; spans hold routes, ids and figures, never
// content, keys or texts of errors.
package tracing
