package tenants

// Scopes that members can give to the token of a service.
const (
	ScopeBillingRead  = "billing:read"  // balances, statements and usage
	ScopeTenantsAdmin = "tenants:admin" // what an admin may do, over the API; see Caller.Role
)

// GrantableScopes lists the scopes that a role can give to the token of a service. None lets the token do what the role
// may not do itself. An owner alone gives tenants:admin: such a token goes on when whoever made it has lost their role or
// is gone, never has to prove anew who holds it, and makes others like itself.
func (r Role) GrantableScopes() (scopes []string) {
	if r.May(ServiceTokensWrite) {
		scopes = append(scopes, ScopeBillingRead)
	}
	if r.May(ServiceTokensWrite) && r.May(OwnersManage) {
		scopes = append(scopes, ScopeTenantsAdmin)
	}
	return scopes
}
