package tenants

// Scopes that members can grant to a service's token.
const (
	ScopeBillingRead  = "billing:read"  // balances, statements and usage
	ScopeTenantsAdmin = "tenants:admin" // what an admin may do, over the API; see Caller.Role
)

// GrantableScopes lists the scopes that a role can grant to a
// service token, none beyond its own. Only an owner grants
// tenants:admin: such a token outlives its creator's role, never
// proves its holder's identity, and can create others like itself.
func (r Role) GrantableScopes() (scopes []string) {
	if r.May(ServiceTokensWrite) {
		scopes = append(scopes, ScopeBillingRead)
	}
	if r.May(ServiceTokensWrite) && r.May(OwnersManage) {
		scopes = append(scopes, ScopeTenantsAdmin)
	}
	return scopes
}
