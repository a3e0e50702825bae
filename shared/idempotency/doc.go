// Package idempotency stores the answers to requests with an
// Idempotency-Key, in the transaction of their effect, so that each has
// its effect once. It changes the table that a module names, with the
// columns organization, key, input, answer and answered_at.
package idempotency
