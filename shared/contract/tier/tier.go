// Package tier names what an organization can subscribe to, for tenants, which offers it, and the ledger, which grants it.
// It is as pure as the domains that use it.
package tier

// The tiers, in the order of what they grant.
const (
	Indie        = "indie"
	Bootstrapper = "bootstrapper"
	Compliance   = "compliance"
	Scale        = "scale"
)
