package gateway_test

import (
	"testing"

	"github.com/weirlog/weir/deploy/gateway"
)

// Every path of the API reaches the module that owns its noun,
// and no other path reaches any.
func TestOwner(t *testing.T) {
	owners := map[string]gateway.Module{
		"/v1/logs":                             gateway.Ingest,
		"/v1/logs/tail":                        gateway.Ingest,
		"/v1/organizations":                    gateway.Tenants,
		"/v1/organizations/org_1":              gateway.Tenants,
		"/v1/organizations/org_1/members":      gateway.Tenants,
		"/v1/organizations/org_1/balance":      gateway.Ledger,
		"/v1/organizations/org_1/entries":      gateway.Ledger,
		"/v1/organizations/org_1/chain":        gateway.Ledger,
		"/v1/organizations/org_1/verification": gateway.Ledger,
		"/v1/organizations/org_1/grants/7":     gateway.Ledger,
		"/v1/organizations/balance":            gateway.Tenants,
		"/v1/projects":                         gateway.Tenants,
		"/v1/projects/prj_1":                   gateway.Tenants,
		"/v1/projects/prj_1/error-groups":      gateway.Grouping,
		"/v1/projects/error-groups":            gateway.Tenants,
		"/v1/error-groups/grp_1":               gateway.Grouping,
		"/v1/api-keys/key_1/revoke":            gateway.Tenants,
		"/v1/service-tokens":                   gateway.Tenants,
		"/v1/leak-reports":                     gateway.Tenants,
		"/console":                             gateway.Tenants,
		"/console/":                            gateway.Tenants,
		"/console/sign-in":                     gateway.Tenants,
		"/console/settings/api-keys":           gateway.Tenants,
		"/console/assets/weir.css":             gateway.Tenants,
		"/console/logs":                        gateway.Ingest,
		"/console/errors/grp_1":                gateway.Grouping,
		"/console/usage":                       gateway.Ledger,
		"/consoles":                            "",
		"/v1":                                  "",
		"/v1/":                                 "",
		"/v1/nothing":                          "",
		"/v2/logs":                             "",
		"/logs":                                "",
		"/":                                    "",
	}
	for path, want := range owners {
		module, known := gateway.Owner(path)
		if module != want || known != (want != "") {
			t.Errorf("Owner(%q) = %q, %t, want %q", path, module, known, want)
		}
	}
}
