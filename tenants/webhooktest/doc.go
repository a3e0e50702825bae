// Package webhooktest is an endpoint for the messages of tests. It
// verifies them by the library of Standard Webhooks, as receivers do,
// and listens only on this machine.
package webhooktest
