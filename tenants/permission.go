package tenants

import (
	"fmt"
	"slices"
)

// A Permission is one thing that a role may do in an
// organization. One's own sessions and password need none.
type Permission string

// The permissions. They are part of errors and of the audit.
const (
	OrganizationRead   Permission = "organization:read"
	OrganizationWrite  Permission = "organization:write"
	SecurityWrite      Permission = "security:write" // see and change the security policy
	MembersRead        Permission = "members:read"
	MembersInvite      Permission = "members:invite"
	MembersManage      Permission = "members:manage" // change roles, remove, issue reset codes
	OwnersManage       Permission = "owners:manage"  // the same for owners
	ProjectsRead       Permission = "projects:read"
	ProjectsWrite      Permission = "projects:write"
	DeletionsManage    Permission = "deletions:manage" // delete the organization or projects, and see their deletions
	APIKeysRead        Permission = "api-keys:read"
	APIKeysWrite       Permission = "api-keys:write"      // of staging and dev
	APIKeysWriteProd   Permission = "api-keys:write-prod" // of prod
	ServiceTokensRead  Permission = "service-tokens:read"
	ServiceTokensWrite Permission = "service-tokens:write"
	AuditRead          Permission = "audit:read"
	LogsRead           Permission = "logs:read"
	SearchesShare      Permission = "searches:share" // save searches for everybody, and set alerts on them
	ErrorsRead         Permission = "errors:read"
	ErrorsDecide       Permission = "errors:decide" // resolve, ignore and assign them
	UsageRead          Permission = "usage:read"
	BudgetsManage      Permission = "budgets:manage"  // set and remove them; who sees the usage sees them
	WebhooksManage     Permission = "webhooks:manage" // see and change them and their deliveries
	MailsReceive       Permission = "mails:receive"   // get mail, and choose which of what the role gets
)

// Permissions lists all of them.
func Permissions() []Permission {
	return []Permission{
		OrganizationRead, OrganizationWrite, SecurityWrite, MembersRead, MembersInvite, MembersManage, OwnersManage,
		ProjectsRead, ProjectsWrite, DeletionsManage, APIKeysRead, APIKeysWrite, APIKeysWriteProd, ServiceTokensRead, ServiceTokensWrite,
		AuditRead, LogsRead, SearchesShare, ErrorsRead, ErrorsDecide, UsageRead, BudgetsManage, WebhooksManage, MailsReceive,
	}
}

// May reports whether the role has a permission. An unknown role has none.
func (r Role) May(p Permission) bool {
	switch r {
	case Owner:
		return slices.Contains(Permissions(), p)
	case Admin:
		return Owner.May(p) && p != OwnersManage && p != DeletionsManage
	case Developer:
		return Viewer.May(p) || p == ProjectsWrite || p == APIKeysWrite || p == ServiceTokensRead || p == ErrorsDecide || p == SearchesShare
	case Viewer:
		return slices.Contains([]Permission{OrganizationRead, UsageRead, MembersRead, ProjectsRead, APIKeysRead, LogsRead, ErrorsRead, MailsReceive}, p)
	case Billing:
		return p == OrganizationRead || p == UsageRead || p == BudgetsManage || p == WebhooksManage || p == MailsReceive
	}
	return false
}

// IssuePermission is the permission to create,
// rotate and revoke API keys of an environment.
func IssuePermission(environment Environment) Permission {
	if environment == Prod {
		return APIKeysWriteProd
	}
	return APIKeysWrite
}

// MayIssueFor reports whether the role may create,
// rotate and revoke API keys of an environment.
func (r Role) MayIssueFor(environment Environment) bool {
	return r.May(IssuePermission(environment))
}

// ManagePermission is the permission to give or
// change a role and to remove members with it.
func ManagePermission(role Role) Permission {
	if role == Owner {
		return OwnersManage
	}
	return MembersManage
}

// MayManage reports whether the role may give or
// change another, and remove members with it.
func (r Role) MayManage(other Role) bool {
	return r.May(ManagePermission(other))
}

// InvitePermission is the permission to invite to a role.
func InvitePermission(role Role) Permission {
	if role == Owner {
		return OwnersManage
	}
	return MembersInvite
}

// MayInvite reports whether the role may invite to another one.
func (r Role) MayInvite(to Role) bool {
	return r.May(InvitePermission(to))
}

// RolesWith lists the roles that have a permission.
func RolesWith(p Permission) []Role {
	return slices.DeleteFunc(Roles(), func(r Role) bool { return !r.May(p) })
}

// A Role is what a member may do in an organization: see Permission.
type Role string

// The roles.
const (
	Owner     Role = "owner"
	Admin     Role = "admin"     // may do all but create, change and remove owners
	Developer Role = "developer" // manages projects and keys, but those of prod
	Viewer    Role = "viewer"    // reads all, changes nothing
	Billing   Role = "billing"   // reads usage, manages webhooks, and nothing else
)

// Roles lists all of them, the most powerful first.
func Roles() []Role {
	return []Role{Owner, Admin, Developer, Viewer, Billing}
}

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
