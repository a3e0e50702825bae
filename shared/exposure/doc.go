// Package exposure finds API keys that travelled in plaintext, so that tenants
// can flag or revoke them: every service with a listener of its own has a
// Watch. It may touch the credentials in memory and the publisher given to it.
package exposure
