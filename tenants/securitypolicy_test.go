package tenants_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
)

// A policy is set whole; setting it again decides nothing, and a word that is not known is refused.
func TestSecurityPolicyDecisions(t *testing.T) {
	set := func(leaked tenants.LeakedPolicy, plain tenants.PlainHTTPPolicy) func(tenants.SecurityPolicy) ([]tenants.Event, error) {
		return func(p tenants.SecurityPolicy) ([]tenants.Event, error) {
			return p.Set(tenants.SetSecurityPolicy{Organization: "org_1", LeakedKeys: leaked, PlainHTTPKeys: plain, At: noon})
		}
	}
	was := tenants.SecurityPolicySet{Organization: "org_1", LeakedKeys: tenants.NotifyLeaked, PlainHTTPKeys: tenants.FlagPlainHTTP, At: noon}
	strict := was
	strict.LeakedKeys, strict.PlainHTTPKeys = tenants.RevokeLeaked, tenants.RevokePlainHTTP
	decide(t, map[string]decision[tenants.SecurityPolicy]{
		"set":             {when: set(tenants.NotifyLeaked, tenants.FlagPlainHTTP), then: []tenants.Event{was}},
		"set again":       {given: []tenants.Event{was}, when: set(tenants.NotifyLeaked, tenants.FlagPlainHTTP)},
		"set another":     {given: []tenants.Event{was}, when: set(tenants.RevokeLeaked, tenants.RevokePlainHTTP), then: []tenants.Event{strict}},
		"words not known": {when: set("ignore", "allow"), faults: []string{"leaked_keys", "plain_http_keys"}},
		"a word left out": {when: set("", tenants.FlagPlainHTTP), faults: []string{"leaked_keys"}},
		"mixed up words":  {when: set(tenants.NotifyLeaked, "rotate"), faults: []string{"plain_http_keys"}},
	})
}
