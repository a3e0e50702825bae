// Package inbox decides which records of weir.logs.v1 may have an effect, so
// that each accepted request has exactly one, whole or not at all: positions
// rule out a record delivered twice, the inbox a part produced twice, a
// request made twice with one Idempotency-Key, and one of several parts of
// which not all were published. Every consumer asks its own inbox, in its own
// schema. They agree without communicating, since the parts of a request and
// the copies of one idempotency key share a partition
// (contract.LogsAccepted.RecordKey) and so have one order.
package inbox
