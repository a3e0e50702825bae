// Package webhooktest is an endpoint that tests have messages sent to. It
// verifies them by the library of Standard Webhooks, as receivers do, and
// listens on this machine alone.
package webhooktest
