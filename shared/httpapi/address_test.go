package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
)

// Only trusted proxies decide a request's origin; no header of a
// client changes its address.
func TestClientAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                       {"203.0.113.9:1", nil, "203.0.113.9"},
		"a client that pretends":         {"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		"behind a proxy":                 {"10.0.0.7:1", []string{"203.0.113.9"}, "203.0.113.9"},
		"behind two proxies":             {"10.0.0.7:1", []string{"203.0.113.9, 10.0.0.8"}, "203.0.113.9"},
		"two headers":                    {"10.0.0.7:1", []string{"203.0.113.9", "10.0.0.8"}, "203.0.113.9"},
		"pretending behind a proxy":      {"10.0.0.7:1", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		"pretending to be a proxy":       {"10.0.0.7:1", []string{"10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		"nonsense before the client":     {"10.0.0.7:1", []string{"x, 203.0.113.9"}, "203.0.113.9"},
		"a proxy that says nothing":      {"10.0.0.7:1", nil, "10.0.0.7"},
		"a proxy that says nonsense":     {"10.0.0.7:1", []string{"unknown"}, "10.0.0.7"},
		"IPv4 in IPv6":                   {"[::ffff:10.0.0.7]:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		"IPv6 behind a proxy by a local": {"[::1]:1", []string{"2001:db8::5"}, "2001:db8::5"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.forwarded
		if got := httpapi.ClientAddress(r, trusted); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestClientNetwork(t *testing.T) {
	for client, want := range map[string]string{"203.0.113.9": "203.0.113.9/32", "2001:db8:1:2:3::9": "2001:db8:1:2::/64"} {
		if got := httpapi.ClientNetwork(netip.MustParseAddr(client)); got.String() != want {
			t.Errorf("%s: got %s, want %s", client, got, want)
		}
	}
	if got := httpapi.ClientNetwork(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: got %s", got)
	}
}
