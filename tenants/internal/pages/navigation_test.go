package pages

import (
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

// A refusal names what it is about: every permission has a text.
func TestDeeds(t *testing.T) {
	seen := map[string]tenants.Permission{permissionText("something else"): "something else"}
	for _, permission := range tenants.Permissions() {
		words := permissionText(permission)
		if other, taken := seen[words]; taken {
			t.Errorf("%s and %s are both called %q", permission, other, words)
		}
		seen[words] = permission
	}
}

// A refusal names the roles that may.
func TestWhoMay(t *testing.T) {
	for permission, want := range map[tenants.Permission]string{
		tenants.OwnersManage:  "Ask an owner",
		tenants.MembersManage: "Ask one of the owners or admins",
		tenants.ProjectsWrite: "Ask one of the owners, admins or developers",
	} {
		if got := rolesText(permission); got != want {
			t.Errorf("%s: %q, want %q", permission, got, want)
		}
	}
}

// What a role may read is defined twice: here,
// and in the other modules. Both must agree.
func TestReadsAreThoseOfOtherModules(t *testing.T) {
	for _, role := range append(tenants.Roles(), "unknown") {
		for _, read := range identity.Reads() {
			if here, there := role.May(tenants.Permission(read)), identity.RoleReads(string(role), read); here != there {
				t.Errorf("%s may %s: %t here, %t in shared/identity", role, read, here, there)
			}
		}
		if here, there := role.May(tenants.SearchesShare), identity.RoleSharesSearches(string(role)); here != there {
			t.Errorf("%s may share searches here: %t, there: %t", role, here, there)
		}
		if here, there := role.May(tenants.ErrorsDecide), identity.RoleDecides(string(role)); here != there {
			t.Errorf("%s may decide about errors: %t here, %t in shared/identity", role, here, there)
		}
		if here, there := role.May(tenants.BudgetsManage), identity.RoleSetsBudgets(string(role)); here != there {
			t.Errorf("%s may set budgets: %t here, %t in shared/identity", role, here, there)
		}
	}
}
