package identity

import (
	"context"
	"slices"
)

// A Read is what roles may see on a module's pages. The names are those
// of tenants' permissions; a test of tenants compares both tables.
type Read string

// The reads.
const (
	ReadLogs   Read = "logs:read"
	ReadErrors Read = "errors:read"
	ReadUsage  Read = "usage:read"
)

// Reads lists all reads.
func Reads() []Read { return []Read{ReadLogs, ReadErrors, ReadUsage} }

// roles are the roles of sessions, from most rights to fewest. They
// are stored data.
var roles = []string{"owner", "admin", "developer", "viewer", "billing"}

// RoleReads reports whether a role may see something. An unknown role,
// of a newer version or none, may not.
func RoleReads(role string, read Read) bool {
	switch role {
	case "owner", "admin", "developer", "viewer":
		return slices.Contains(Reads(), read)
	case "billing":
		return read == ReadUsage
	}
	return false
}

// RoleSetsBudgets reports whether a role may set the budgets
// of its organization.
func RoleSetsBudgets(role string) bool {
	return role == "owner" || role == "admin" || role == "billing"
}

// RoleOperates reports whether a role of the installation's own
// organization may look at all others.
func RoleOperates(role string) bool { return role == "owner" }

// RolesThatSetBudgets lists the roles that may, for people to ask.
func RolesThatSetBudgets() []string {
	return slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return !RoleSetsBudgets(role) })
}

// MayRead reports whether the signed-in member may see something.
func (p Principal) MayRead(read Read) bool { return RoleReads(p.Role(), read) }

// RolesThatRead lists the roles that may see something, for people to ask.
func RolesThatRead(read Read) (able []string) {
	for _, role := range roles {
		if RoleReads(role, read) {
			able = append(able, role)
		}
	}
	return able
}

// OrganizationOf returns the organization of a request's caller;
// empty without one.
func OrganizationOf(ctx context.Context) string {
	principal, _ := PrincipalOf(ctx)
	return principal.Organization
}
