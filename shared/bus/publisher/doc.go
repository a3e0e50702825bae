// Package publisher writes messages to topics with acks=all and an
// idempotent producer. It may use the protocol under internal, and no
// package that reads.
package publisher
