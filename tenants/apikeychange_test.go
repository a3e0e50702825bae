package tenants_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
)

// The name and limit of a working key can be changed;
// its limit is never above its organization's.
func TestAPIKeyChangeDecisions(t *testing.T) {
	change := func(name string, rate, ceiling int) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Change(tenants.ChangeAPIKey{Name: &name, RatePerMinute: &rate, Ceiling: ceiling, At: noon})
		}
	}
	nothing := func(k tenants.APIKey) ([]tenants.Event, error) { return k.Change(tenants.ChangeAPIKey{At: noon}) }
	renamed := tenants.APIKeyRenamed{APIKey: "key_1", Name: "Checkout", At: noon}
	limited := tenants.APIKeyLimited{APIKey: "key_1", RatePerMinute: 30, At: noon}
	expired := keyIssued()
	expired.ExpiresAt = &noon
	given := []tenants.Event{keyIssued()}
	access := func(access tenants.Access) func(tenants.APIKey) ([]tenants.Event, error) {
		return func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Change(tenants.ChangeAPIKey{Access: &access, At: noon})
		}
	}
	narrowed := tenants.APIKeyAccessChanged{APIKey: "key_1", Access: tenants.WriteAccess, At: noon}
	widened := tenants.APIKeyAccessChanged{APIKey: "key_1", Access: tenants.FullAccess, At: noon}
	decide(t, map[string]decision[tenants.APIKey]{
		"to read less":           {given: given, when: access(tenants.WriteAccess), then: []tenants.Event{narrowed}},
		"to read as much":        {given: given, when: access(tenants.FullAccess)},
		"to read more":           {given: []tenants.Event{keyIssued(), narrowed}, when: access(tenants.FullAccess), then: []tenants.Event{widened}},
		"no such access":         {given: given, when: access("read"), faults: []string{"access"}},
		"no access":              {given: given, when: access(""), faults: []string{"access"}},
		"name and limit":         {given: given, when: change(" Checkout ", 30, 60), then: []tenants.Event{renamed, limited}},
		"the same":               {given: given, when: change("Shop, live", 0, 60)},
		"nothing":                {given: given, when: nothing},
		"no limit any more":      {given: []tenants.Event{keyIssued(), limited}, when: change("Shop, live", 0, 60), then: []tenants.Event{tenants.APIKeyLimited{APIKey: "key_1", At: noon}}},
		"as the organization's":  {given: given, when: change("Shop, live", 60, 60), then: []tenants.Event{tenants.APIKeyLimited{APIKey: "key_1", RatePerMinute: 60, At: noon}}},
		"above the organization": {given: given, when: change("Shop, live", 61, 60), faults: []string{"rate_per_minute"}},
		"ceiling not known":      {given: given, when: change("Shop, live", 30, 0), then: []tenants.Event{limited}},
		"every fault at once":    {given: given, when: change("", -1, 60), faults: []string{"name", "rate_per_minute"}},
		"what is revoked":        {given: []tenants.Event{keyIssued(), tenants.APIKeyRevoked{APIKey: "key_1", At: noon}}, when: change("Checkout", 30, 60), fails: tenants.ErrKeyRevoked},
		"what has expired":       {given: []tenants.Event{expired}, when: change("Checkout", 30, 60), fails: tenants.ErrKeyExpired},
		"what is not":            {when: change("Checkout", 30, 60), fails: tenants.ErrNotFound},
	})
}
