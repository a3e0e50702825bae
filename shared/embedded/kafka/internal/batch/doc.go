// Package batch reads and writes record batches, message format 2, as
// producers send them and as the log keeps them. It is pure: bytes in
// memory.
package batch
