// Package wire encodes and decodes the primitive types of Kafka's
// protocol. It imports nothing of the bus and does no I/O.
package wire
