package identity

import (
	"context"
	"slices"
)

// A Read is what pages of a module show, and what a role may or may not look at. The names are those of tenants'
// permissions: both tables say the same, which tenants tests.
type Read string

// The reads.
const (
	ReadLogs   Read = "logs:read"
	ReadErrors Read = "errors:read"
	ReadUsage  Read = "usage:read"
)

// Reads lists all of them.
func Reads() []Read { return []Read{ReadLogs, ReadErrors, ReadUsage} }

// roles are the names of the roles that a session may say, those who may do most first. They are data.
var roles = []string{"owner", "admin", "developer", "viewer", "billing"}

// RoleReads reports whether a role may look at something. A role that is unknown, of a newer version or none, may not.
func RoleReads(role string, read Read) bool {
	switch role {
	case "owner", "admin", "developer", "viewer":
		return slices.Contains(Reads(), read)
	case "billing":
		return read == ReadUsage
	}
	return false
}

// MayRead reports whether the member who has signed in may look at something.
func (p Principal) MayRead(read Read) bool { return RoleReads(p.Role(), read) }

// RolesThatRead lists the roles that may look at something: whom to ask.
func RolesThatRead(read Read) (able []string) {
	for _, role := range roles {
		if RoleReads(role, read) {
			able = append(able, role)
		}
	}
	return able
}

// Known returns the principal of a request, if it has one: for what looks the same to everybody but for a detail.
func Known(ctx context.Context) (Principal, bool) {
	principal, ok := ctx.Value(contextKey{}).(Principal)
	return principal, ok
}

// OrganizationOf is the organization that the caller of a request is bound to; empty where there is none, or no caller.
func OrganizationOf(ctx context.Context) string {
	principal, _ := Known(ctx)
	return principal.Organization
}
