// Package inbox decides which records of weir.logs.v1 may have an
// effect, so that each accepted request has exactly one, whole or not
// at all: it refuses a part produced twice, a request made twice with
// one Idempotency-Key, and a request not all of whose parts were
// published. Every consumer has its own, in its own schema; they agree
// without communicating, as the parts of a request and the copies of a
// key share a partition and so have one order.
package inbox
