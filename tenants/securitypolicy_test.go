package tenants_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
)

// A policy is set whole; setting it again has
// no event, and an unknown word is refused.
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

// Only owners switch passwords off, and only while one of
// them can sign in otherwise; they may always switch them
// on. A request without that field leaves them unchanged.
func TestSwitchingPasswords(t *testing.T) {
	yes, no := true, false
	set := func(off *bool, by tenants.Role, owners int) func(tenants.SecurityPolicy) ([]tenants.Event, error) {
		return func(p tenants.SecurityPolicy) ([]tenants.Event, error) {
			return p.Set(tenants.SetSecurityPolicy{
				Organization: "org_1", LeakedKeys: tenants.NotifyLeaked, PlainHTTPKeys: tenants.FlagPlainHTTP, PasswordsOff: off, By: by, OwnersWithoutPassword: owners, At: noon,
			})
		}
	}
	on := tenants.SecurityPolicySet{Organization: "org_1", LeakedKeys: tenants.NotifyLeaked, PlainHTTPKeys: tenants.FlagPlainHTTP, At: noon}
	off := on
	off.PasswordsOff = true
	strict := off
	strict.LeakedKeys = tenants.RevokeLeaked
	decide(t, map[string]decision[tenants.SecurityPolicy]{
		"off":                       {when: set(&yes, tenants.Owner, 1), then: []tenants.Event{off}},
		"off, and nobody could":     {when: set(&yes, tenants.Owner, 0), faults: []string{"passwords"}},
		"off, by an admin":          {when: set(&yes, tenants.Admin, 1), fails: tenants.ErrForbidden},
		"off again, by an admin":    {given: []tenants.Event{off}, when: set(&yes, tenants.Admin, 0)},
		"on again":                  {given: []tenants.Event{off}, when: set(&no, tenants.Owner, 0), then: []tenants.Event{on}},
		"on again, by an admin":     {given: []tenants.Event{off}, when: set(&no, tenants.Admin, 1), fails: tenants.ErrForbidden},
		"something else, by admins": {given: []tenants.Event{strict}, when: set(nil, tenants.Admin, 0), then: []tenants.Event{off}},
	})
}
