package tenants

import "slices"

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
	ErrorsRead         Permission = "errors:read"
	UsageRead          Permission = "usage:read"
	BudgetsManage      Permission = "budgets:manage"  // set and remove them; who sees the usage sees them
	WebhooksManage     Permission = "webhooks:manage" // see and change them and their deliveries
	MailsReceive       Permission = "mails:receive"   // get mail about the account, and choose which
)

// Permissions lists all of them.
func Permissions() []Permission {
	return []Permission{
		OrganizationRead, OrganizationWrite, SecurityWrite, MembersRead, MembersInvite, MembersManage, OwnersManage,
		ProjectsRead, ProjectsWrite, DeletionsManage, APIKeysRead, APIKeysWrite, APIKeysWriteProd, ServiceTokensRead, ServiceTokensWrite,
		AuditRead, LogsRead, ErrorsRead, UsageRead, BudgetsManage, WebhooksManage, MailsReceive,
	}
}

// May reports whether the role has a permission. An unknown role has none.
func (r Role) May(p Permission) bool {
	switch r {
	case Owner:
		return slices.Contains(Permissions(), p)
	case Admin:
		return Owner.May(p) && p != OwnersManage && p != DeletionsManage && p != MailsReceive
	case Developer:
		return Viewer.May(p) || p == ProjectsWrite || p == APIKeysWrite || p == ServiceTokensRead
	case Viewer:
		return slices.Contains([]Permission{OrganizationRead, UsageRead, MembersRead, ProjectsRead, APIKeysRead, LogsRead, ErrorsRead}, p)
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
