// Package exposure finds API keys that were sent in plaintext, so that
// tenants can flag or revoke them: every service with a listener has a
// Watch. It may use the credentials in memory and the publisher given to it.
package exposure
