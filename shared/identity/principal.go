package identity

import (
	"context"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// A Principal is a caller.
type Principal struct {
	Kind          string // contract.CredentialAPIKey, contract.CredentialServiceToken or contract.CredentialSession
	ID            string
	Organization  string // empty: of the whole installation
	Project       string
	Environment   string
	Member        string // the session's member
	Name          string // the member's, when the session was started; empty: unknown
	Scopes        []string
	RatePerMinute int      // 0: no own limit
	Access        string   // what an API key may read, such as contract.AccessProject; empty: its whole organization
	Lenient       bool     // an API key's entries are normalized
	Origins       []string // of the web pages that use an API key; none: programs do

	AuthenticatedAt time.Time // of a session: when its member last authenticated; zero: unknown
	RenewAt         time.Time // of a session: when use should begin to renew it; zero: never
}

// Has reports whether the principal has scope.
func (p Principal) Has(scope string) bool {
	return slices.Contains(p.Scopes, scope)
}

// Reaches reports whether the principal may act for organization: its
// own, or any for one of the installation.
func (p Principal) Reaches(organization string) bool {
	return p.Organization == "" || p.Organization == organization
}

// FromPage reports whether the principal is an API key of web pages, which
// anybody may have.
func (p Principal) FromPage() bool { return len(p.Origins) > 0 }

// ReadsNothing reports whether the principal is an API key that may
// only write. Unknown values of newer versions count as that.
func (p Principal) ReadsNothing() bool {
	switch p.Access {
	case "", contract.AccessFull, contract.AccessProject:
		return false
	}
	return true
}

// OnlyProject returns the only project that an API key reads; false if
// it reads its whole organization.
func (p Principal) OnlyProject() (project string, alone bool) {
	return p.Project, p.Access == contract.AccessProject
}

// ReadsProject reports whether an API key may read a project of its organization.
func (p Principal) ReadsProject(project string) bool {
	own, alone := p.OnlyProject()
	return !alone || project == own
}

type contextKey struct{}

// NewContext returns a context that carries the principal.
func NewContext(ctx context.Context, principal Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, principal)
}

// PrincipalOf returns a request's principal, if any: a process's own
// work has none.
func PrincipalOf(ctx context.Context) (principal Principal, ok bool) {
	principal, ok = ctx.Value(contextKey{}).(Principal)
	return principal, ok
}

// FromContext returns the principal of a request behind RequireAPIKey
// or RequireScope. Elsewhere it panics: such a route would be open.
func FromContext(ctx context.Context) Principal {
	principal, ok := PrincipalOf(ctx)
	if !ok {
		panic("BUG: no principal: the route lacks its authentication")
	}
	return principal
}

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

// RoleSharesSearches reports whether a role may save searches for
// everybody, and set alerts on them.
func RoleSharesSearches(role string) bool {
	return role == "owner" || role == "admin" || role == "developer"
}

// RoleDecides reports whether a role may resolve, ignore and
// assign the errors of its organization.
func RoleDecides(role string) bool { return role == "owner" || role == "admin" || role == "developer" }

// RoleOperates reports whether a role of the installation's own
// organization may look at all others.
func RoleOperates(role string) bool { return role == "owner" }

// RolesThatSetBudgets lists the roles that may, for people to ask.
func RolesThatSetBudgets() []string {
	return slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return !RoleSetsBudgets(role) })
}

// RolesThatShareSearches lists the roles that may, for people to ask.
func RolesThatShareSearches() []string {
	return slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return !RoleSharesSearches(role) })
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
