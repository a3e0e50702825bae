package tenants_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
)

func memberIdentified() tenants.MemberIdentified {
	return tenants.MemberIdentified{Member: "mem_1", Issuer: "https://id.example", Subject: "248289761001", At: later}
}

// A member is one person at an identity provider, until the password
// is reset by a code. Another provider replaces the previous one.
func TestIdentifyDecisions(t *testing.T) {
	identify := func(issuer, subject string) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.Identify(tenants.Identify{Identity: tenants.ProviderIdentity{Issuer: issuer, Subject: subject}, At: later})
		}
	}
	same, another := identify("https://id.example", "248289761001"), identify("https://id.example", "7")
	moved := tenants.MemberIdentified{Member: "mem_1", Issuer: "https://new.example", Subject: "248289761001", At: later}
	changed := tenants.MemberIdentified{Member: "mem_1", Issuer: "https://id.example", Subject: "7", At: later}
	given := []tenants.Event{memberAdded(), memberIdentified()}
	after := func(event tenants.Event) []tenants.Event { return append(given[:2:2], event) }
	decide(t, map[string]decision[tenants.Member]{
		"the first time":         {given: given[:1], when: same, then: []tenants.Event{memberIdentified()}},
		"again":                  {given: given, when: same},
		"somebody else":          {given: given, when: another, fails: tenants.ErrOtherIdentity},
		"at another provider":    {given: given, when: identify("https://new.example", "248289761001"), then: []tenants.Event{moved}},
		"back at the first one":  {given: after(moved), when: another, then: []tenants.Event{changed}},
		"after a reset":          {given: after(tenants.MemberPasswordChanged{Member: "mem_1", Reset: true, At: later}), when: another, then: []tenants.Event{changed}},
		"after another password": {given: after(tenants.MemberPasswordChanged{Member: "mem_1", At: later}), when: another, fails: tenants.ErrOtherIdentity},
		"who was removed":        {given: after(tenants.MemberRemoved{Member: "mem_1", At: later}), when: same, fails: tenants.ErrNotFound},
		"nobody":                 {when: same, fails: tenants.ErrNotFound},
	})
}
