package tenants_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

var update = flag.Bool("update", false, "rewrite the table of permissions")

const permissionsFile = "testdata/permissions.txt"

// This table is who may do what. A change of it changes what people may do.
func TestPermissions(t *testing.T) {
	got := permissionTable()
	if *update {
		testenv.Must(t, os.WriteFile(permissionsFile, []byte(got), 0o600))
	}
	want, err := os.ReadFile(permissionsFile)
	if err != nil || got != string(want) {
		t.Errorf("%v\n got\n%s\nwant\n%s", err, got, want)
	}
}

func permissionTable() string {
	var table strings.Builder
	columns := append(tenants.Roles(), "", "OWNER", "root")
	row := func(name string, cell func(tenants.Role) string) {
		line := fmt.Sprintf("%-23s", name)
		for _, role := range columns {
			line += fmt.Sprintf(" %-11s", cell(role))
		}
		table.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("", func(r tenants.Role) string { return fmt.Sprintf("%q", string(r)) })
	for _, permission := range append(tenants.Permissions(), "", "everything") {
		row(string(permission), func(r tenants.Role) string { return word(r.May(permission)) })
	}
	for _, environment := range []tenants.Environment{tenants.Prod, tenants.Staging, tenants.Dev} {
		row("issue keys for "+string(environment), func(r tenants.Role) string { return word(r.MayIssueFor(environment)) })
	}
	for _, other := range tenants.Roles() {
		row("manage "+string(other), func(r tenants.Role) string { return word(r.MayManage(other)) })
	}
	for _, other := range tenants.Roles() {
		row("invite to "+string(other), func(r tenants.Role) string { return word(r.MayInvite(other)) })
	}
	return table.String()
}

func word(may bool) string {
	if may {
		return "yes"
	}
	return "-"
}

// Every permission has a role, and its roles have it.
func TestRolesWithPermission(t *testing.T) {
	for _, permission := range tenants.Permissions() {
		asked := tenants.RolesWith(permission)
		if len(asked) == 0 || asked[0] != tenants.Owner {
			t.Errorf("%s: ask %v", permission, asked)
		}
		for _, role := range asked {
			if !role.May(permission) {
				t.Errorf("%s: %s is said to have it", permission, role)
			}
		}
	}
}
