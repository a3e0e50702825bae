package tenants_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants"
)

// A filter that no line can match is refused,
// field by field, instead of finding nothing.
func TestAuditFilter(t *testing.T) {
	for name, test := range map[string]struct {
		filter tenants.AuditFilter
		faults []string
	}{
		"everything":          {tenants.AuditFilter{Organization: "org_1"}, nil},
		"all that there is":   {tenants.AuditFilter{Actor: "mem_1", Action: "api_key.revoked", Target: "key_1", From: noon, To: later}, nil},
		"only a beginning":    {tenants.AuditFilter{From: later}, nil},
		"only an end":         {tenants.AuditFilter{To: noon}, nil},
		"no time":             {tenants.AuditFilter{From: noon, To: noon}, []string{"to"}},
		"an end before":       {tenants.AuditFilter{From: later, To: noon}, []string{"to"}},
		"a part of an action": {tenants.AuditFilter{Action: "api_key"}, []string{"action"}},
		"every fault at once": {tenants.AuditFilter{Actor: "a b", Target: "a\x00", Action: strings.Repeat("a", 50) + ".b", From: later, To: noon},
			[]string{"actor", "target", "action", "to"}},
	} {
		if got := faultyFields(test.filter.Check()); !slices.Equal(got, test.faults) {
			t.Errorf("%s: faults %q, want %q", name, got, test.faults)
		}
	}
}
