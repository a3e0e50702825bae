package tenants

// Scopes that members can give to the token of a service.
const (
	ScopeBillingRead  = "billing:read"  // balances, statements and usage
	ScopeTenantsAdmin = "tenants:admin" // what an admin may do, over the API; see Caller.Role
)

// GrantableScopes lists the scopes that a role can give to a service
// token, none beyond its own. Only an owner gives tenants:admin: such a
// token outlives the role of its maker, never proves its holder's
// identity, and makes others like itself.
func (r Role) GrantableScopes() (scopes []string) {
	if r.May(ServiceTokensWrite) {
		scopes = append(scopes, ScopeBillingRead)
	}
	if r.May(ServiceTokensWrite) && r.May(OwnersManage) {
		scopes = append(scopes, ScopeTenantsAdmin)
	}
	return scopes
}
