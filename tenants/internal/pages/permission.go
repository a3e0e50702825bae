package pages

import (
	"net/http"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
)

// permitted passes readers whose role has a permission.
func permitted(p tenants.Permission, next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := Need(r, p); err != nil {
			return err
		}
		return next(w, r)
	}
}

// Need refuses a reader whose role lacks a
// permission, and names the roles that have it.
func Need(r *http.Request, p tenants.Permission) error {
	role := RoleOf(r)
	if role.May(p) {
		return nil
	}
	return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
		"Your role here is "+string(role)+", which may not "+permissionText(p)+". "+rolesText(p)+".")
}

// rolesText lists the roles with a permission.
func rolesText(p tenants.Permission) string {
	roles := tenants.RolesWith(p)
	words := make([]string, len(roles))
	for i, role := range roles {
		words[i] = string(role) + "s"
	}
	if len(words) == 1 {
		return "Ask an " + string(roles[0])
	}
	last := len(words) - 1
	return "Ask one of the " + strings.Join(words[:last], ", ") + " or " + words[last]
}

// permissionText is what a permission allows, to follow "may".
func permissionText(p tenants.Permission) string {
	switch p {
	case tenants.OrganizationRead:
		return "see the organization"
	case tenants.OrganizationWrite:
		return "change the organization"
	case tenants.SecurityWrite:
		return "see or change the security policy"
	case tenants.MembersRead:
		return "see the members"
	case tenants.MembersInvite:
		return "invite people"
	case tenants.MembersManage:
		return "change or remove members"
	case tenants.OwnersManage:
		return "make, change or remove owners"
	case tenants.DeletionsManage:
		return "delete the organization or projects"
	case tenants.ProjectsRead:
		return "see the projects"
	case tenants.ProjectsWrite:
		return "create or change projects"
	case tenants.APIKeysRead:
		return "see the API keys"
	case tenants.APIKeysWrite:
		return "create, change or revoke API keys"
	case tenants.APIKeysWriteProd:
		return "create, change or revoke API keys of prod"
	case tenants.ServiceTokensRead:
		return "see the service tokens"
	case tenants.ServiceTokensWrite:
		return "create or revoke service tokens"
	case tenants.AuditRead:
		return "read the audit log"
	case tenants.LogsRead:
		return "read the logs"
	case tenants.ErrorsRead:
		return "read the errors"
	case tenants.UsageRead:
		return "see the usage"
	case tenants.BudgetsManage:
		return "set budgets"
	case tenants.WebhooksManage:
		return "see or change webhooks"
	case tenants.MailsReceive:
		return "get mail about the account"
	}
	return "do this"
}
