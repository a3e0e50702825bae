// Package tier names the tiers that an organization can subscribe to,
// for tenants, which offers them, and the ledger, which grants by them.
// It is as pure as the domains that use it.
package tier
