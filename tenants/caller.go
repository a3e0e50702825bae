package tenants

import (
	"fmt"
	"slices"
)

// A Caller is the holder of a service token, bound to one
// organization or to the Installation (an operator).
type Caller struct {
	ID           string
	Organization string
	Scopes       []string
}

// Operates reports whether the caller is an operator.
func (c Caller) IsOperator() bool {
	return c.Organization == Installation
}

// Role is the role in which the caller acts. An operator acts as an owner. An
// organization's token acts as an admin: else its maker could become an owner.
func (c Caller) Role() Role {
	if c.IsOperator() {
		return Owner
	}
	return Admin
}

// Reaches reports whether organization exists for the caller.
func (c Caller) CanAccess(organization string) bool {
	return c.IsOperator() || c.Organization == organization
}

// Grants refuses scopes that the caller does not hold: a token can't make a
// stronger one. An operator may grant any.
func (c Caller) CheckGrant(scopes []string) error {
	for _, scope := range scopes {
		if !c.IsOperator() && !slices.Contains(c.Scopes, scope) {
			return fmt.Errorf("cannot grant scope %q without holding it: %w", scope, ErrForbidden)
		}
	}
	return nil
}
