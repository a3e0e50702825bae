package tenants

// Scopes that members can give to the token of a service.
const (
	ScopeBillingRead  = "billing:read"  // balances, statements and usage
	ScopeTenantsAdmin = "tenants:admin" // all that an owner may do, over the API
)

// GrantableScopes lists the scopes that a role can give to the token of a service. None lets the token do what the role
// may not do itself: tenants:admin makes owners, so an owner alone gives it.
func (r Role) GrantableScopes() (scopes []string) {
	if r.May(ServiceTokensWrite) {
		scopes = append(scopes, ScopeBillingRead)
	}
	if r.May(ServiceTokensWrite) && r.May(OwnersManage) {
		scopes = append(scopes, ScopeTenantsAdmin)
	}
	return scopes
}
