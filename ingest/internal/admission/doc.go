// Package admission holds, for all organizations and concurrent requests of one process, what decides whether a
// request may pass: rate limits, quotas, and the idempotency keys of the last day. All of it is in memory.
package admission
