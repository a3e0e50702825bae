package registrar

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants"
)

// With an event is kept who decided it and from where, in a form that is data, and nothing that is not known.
func TestMetadata(t *testing.T) {
	address := netip.MustParseAddr("2001:db8::7")
	member := tenants.Member{ID: "mem_1", Organization: "org_1", Role: tenants.Admin}
	for name, test := range map[string]struct {
		got, want map[string]string
	}{
		"a member": {
			Request{Address: address, Client: "Mozilla/5.0", ID: "req_1"}.by(member).metadata(),
			map[string]string{"actor": "mem_1", "actor_kind": "member", "role": "admin", "address": "2001:db8::7",
				"client": "Mozilla/5.0", "request": "req_1"},
		},
		"a service token": {
			Request{Caller: tenants.Caller{ID: "tok_1"}}.metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token"},
		},
		"a credential in the wrong place": {
			Request{Caller: tenants.Caller{ID: "tok_1"}, Client: "weir_" + strings.Repeat("a", 48) + "/1.0"}.metadata(),
			map[string]string{"actor": "tok_1", "actor_kind": "service_token", "client": "weir_[redacted]/1.0"},
		},
		"the configuration": {byConfiguration(), map[string]string{"actor": "configuration", "actor_kind": "configuration"}},
		"the system":        {bySystem("expiry"), map[string]string{"actor": "expiry", "actor_kind": "system"}},
	} {
		if !maps.Equal(test.got, test.want) {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
		if back := tenants.OriginOf(test.got).Metadata(); !maps.Equal(back, test.want) {
			t.Errorf("%s: read back as %v", name, back)
		}
	}
}

// What a client says of itself may be anything; at most 200 bytes of it are kept, as text that can be shown.
func TestClip(t *testing.T) {
	for given, want := range map[string]string{
		"curl/8.5.0":                   "curl/8.5.0",
		"a\x00b\x1b[1m\tc":             "ab[1mc",
		"bad \xff bytes":               "bad  bytes",
		strings.Repeat("x", 201):       strings.Repeat("x", 200),
		strings.Repeat("x", 199) + "ä": strings.Repeat("x", 199),
	} {
		if got := clip(given, maxClient); got != want {
			t.Errorf("clip(%q) = %q, want %q", given, got, want)
		}
	}
}
