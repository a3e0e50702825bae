package tenants

import (
	"fmt"
	"testing"
)

// A role grants no scope beyond its own permissions.
func TestGrantableScopes(t *testing.T) {
	want := map[Role]string{
		Owner: "[billing:read tenants:admin]", Admin: "[billing:read]", Developer: "[]", Viewer: "[]", Billing: "[]", "": "[]",
	}
	for role, want := range want {
		if got := fmt.Sprint(role.GrantableScopes()); got != want {
			t.Errorf("%q can give %s, want %s", role, got, want)
		}
	}
}
