package pages

import (
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

// What a role may read is defined twice: here,
// and in the other modules. Both must agree.
func TestReadsAreThoseOfOtherModules(t *testing.T) {
	for _, role := range append(tenants.Roles(), "unknown") {
		for _, read := range identity.Reads() {
			if here, there := role.May(tenants.Permission(read)), identity.RoleReads(string(role), read); here != there {
				t.Errorf("%s may %s: %t here, %t in shared/identity", role, read, here, there)
			}
		}
		if here, there := role.May(tenants.BudgetsManage), identity.RoleSetsBudgets(string(role)); here != there {
			t.Errorf("%s may set budgets: %t here, %t in shared/identity", role, here, there)
		}
	}
}
