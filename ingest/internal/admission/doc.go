// Package admission decides, for all organizations and concurrent requests of
// one process, whether a request may pass: rate limits, quotas, and the
// idempotency keys of the last day. It holds all of it in memory.
package admission
