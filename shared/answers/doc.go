// Package answers keeps what was answered to requests with an Idempotency-Key,
// in the transaction of their effect, so that each has it once. It changes the
// table that a module names: organization, key, input, answer, answered_at.
package answers
