package identity_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
)

// Billing sees usage and no entries; an unknown role sees nothing.
func TestRoleReads(t *testing.T) {
	for role, want := range map[string]string{
		"owner": "logs:read errors:read usage:read", "admin": "logs:read errors:read usage:read",
		"developer": "logs:read errors:read usage:read", "viewer": "logs:read errors:read usage:read",
		"billing": "usage:read", "auditor": "", "": "",
	} {
		var reads []string
		for _, read := range identity.Reads() {
			if identity.RoleReads(role, read) {
				reads = append(reads, string(read))
			}
		}
		if got := strings.Join(reads, " "); got != want {
			t.Errorf("role %q reads %q, want %q", role, got, want)
		}
	}
	if got := strings.Join(identity.RolesThatRead(identity.ReadLogs), " "); got != "owner admin developer viewer" {
		t.Errorf("the logs are read by %q", got)
	}
}
