// Package tier names what an organization can subscribe to, for
// tenants, which offers it, and the ledger, which grants it. It
// is as pure as the domains that use it.
package tier
