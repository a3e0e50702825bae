// Package batch encodes messages into record batches and decodes those
// into records. It does no I/O.
package batch
