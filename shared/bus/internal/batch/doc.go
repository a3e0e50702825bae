// Package batch turns messages into record batches, and record
// batches into records. It does no I/O.
package batch
