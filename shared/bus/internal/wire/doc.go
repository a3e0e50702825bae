// Package wire writes and reads the primitive types of Kafka's protocol in
// bytes. It imports nothing and does no I/O.
package wire
