// Package inbox decides which records of weir.logs.v1 may have an effect, so that each accepted request has exactly one, whole or not at
// all, whatever was sent twice or in part. Positions (see bus) already rule out that a record is delivered twice; the inbox rules out
// what positions can't see: a part that was produced twice, a request that was made twice with one Idempotency-Key, and one of several parts
// of which not all were published.
//
// Every consumer of weir.logs.v1 asks its own inbox, in its own schema. They agree without talking: the parts of a request, and the copies of one
// idempotency key, share a partition (contract.LogsAccepted.RecordKey), so all see them in the same order.
package inbox
