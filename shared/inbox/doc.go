// Package inbox decides which records of weir.logs.v1 may have an effect, so
// that each accepted request has exactly one, whole or not at all: it rules
// out a part produced twice, a request made twice with one Idempotency-Key,
// and a request of which not all parts were published. Every consumer asks
// its own, in its own schema; they agree without communicating, as the parts
// of a request and the copies of a key share a partition and so have one order.
package inbox
