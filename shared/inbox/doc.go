// Package inbox decides which records of weir.logs.v1 may have an effect, so that each accepted request has exactly one: positions rule out
// a record that is delivered twice, the inbox a part that was produced twice and a request that was made twice with one Idempotency-Key.
// Every consumer asks its own inbox, in its own schema. They agree without talking, since the copies of one idempotency key share a
// partition (contract.LogsAccepted.RecordKey) and so have one order.
package inbox
