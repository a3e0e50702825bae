package tenants

import (
	"fmt"
	"slices"
)

// A Caller is the holder of a service token of one
// organization, or of the Installation (an operator).
type Caller struct {
	ID           string
	Organization string
	Scopes       []string
}

// IsOperator reports whether the caller is an operator.
func (c Caller) IsOperator() bool {
	return c.Organization == Installation
}

// Role is the caller's role. Operators act as owners. An organization's
// token acts as an admin: else its creator could become an owner.
func (c Caller) Role() Role {
	if c.IsOperator() {
		return Owner
	}
	return Admin
}

// CanAccess reports whether the caller may see the organization.
func (c Caller) CanAccess(organization string) bool {
	return c.IsOperator() || c.Organization == organization
}

// CheckGrant refuses scopes that the caller lacks: no token
// can create a stronger one. An operator may grant any.
func (c Caller) CheckGrant(scopes []string) error {
	for _, scope := range scopes {
		if !c.IsOperator() && !slices.Contains(c.Scopes, scope) {
			return fmt.Errorf("cannot grant scope %q without holding it: %w", scope, ErrForbidden)
		}
	}
	return nil
}
