package unitofwork_test

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An event is stored with who decided it and from
// where, in a stored form without unknown parts.
func TestMetadata(t *testing.T) {
	address := netip.MustParseAddr("2001:db8::7")
	member := tenants.Member{ID: "mem_1", Organization: "org_1", Role: tenants.Admin}
	for name, test := range map[string]struct {
		got, want map[string]string
	}{
		"a member": {
			unitofwork.Request{Address: address, Client: "Mozilla/5.0", ID: "req_1"}.By(member).Metadata(),
			map[string]string{"actor": "mem_1", "actor_kind": "member", "role": "admin", "address": "2001:db8::7",
				"client": "Mozilla/5.0", "request": "req_1"},
		},
		"a service token": {
			unitofwork.Request{Caller: tenants.Caller{ID: "tok_1"}}.Metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token"},
		},
		"a credential in the wrong place": {
			unitofwork.Request{Caller: tenants.Caller{ID: "tok_1"}, Client: "weir_" + strings.Repeat("a", 48) + "/1.0"}.Metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token", "client": "weir_[redacted]/1.0"},
		},
		"a client that says much, and more than text": {
			unitofwork.Request{Caller: tenants.Caller{ID: "tok_1"}, Client: "a\x00" + strings.Repeat("x", 201)}.Metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token", "client": "a" + strings.Repeat("x", 199)},
		},
		"the configuration": {unitofwork.ByConfiguration().Metadata(), map[string]string{"actor": "configuration", "actor_kind": "configuration"}},
		"the system":        {unitofwork.BySystem("expiry").Metadata(), map[string]string{"actor": "expiry", "actor_kind": "system"}},
	} {
		if !maps.Equal(test.got, test.want) {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
		if back := tenants.OriginOf(test.got).Metadata(); !maps.Equal(back, test.want) {
			t.Errorf("%s: read back as %v", name, back)
		}
	}
}
