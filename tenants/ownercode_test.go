package tenants_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func ownerCodeIssued() tenants.OwnerCodeIssued {
	return tenants.OwnerCodeIssued{Digest: digest("ab12"), At: noon, ExpiresAt: noon.Add(tenants.OwnerCodeLifetime)}
}

// There is a code as long as there are no members;
// the newest one makes one person the first owner.
func TestOwnerCodeDecisions(t *testing.T) {
	issue := func(founded bool) func(tenants.OwnerCode) ([]tenants.Event, error) {
		return func(o tenants.OwnerCode) ([]tenants.Event, error) {
			return o.Issue(tenants.IssueOwnerCode{HasMembers: founded, Digest: digest("ab12"), At: noon})
		}
	}
	use := func(code string, founded bool, at time.Time) func(tenants.OwnerCode) ([]tenants.Event, error) {
		return func(o tenants.OwnerCode) ([]tenants.Event, error) {
			return o.Use(tenants.UseOwnerCode{HasMembers: founded, Code: code + "-hash", Organization: "org_1", Member: "mem_1", At: at})
		}
	}
	given := []tenants.Event{ownerCodeIssued()}
	used := tenants.OwnerCodeUsed{Organization: "org_1", Member: "mem_1", At: later}
	newer := ownerCodeIssued()
	newer.Digest = digest("cd34")
	decide(t, map[string]decision[tenants.OwnerCode]{
		"issue":                   {when: issue(false), then: given},
		"issue another":           {given: []tenants.Event{newer}, when: issue(false), then: given},
		"issue where people are":  {given: given, when: issue(true), fails: tenants.ErrHasMembers},
		"use":                     {given: given, when: use("ab12", false, later), then: []tenants.Event{used}},
		"use twice":               {given: []tenants.Event{ownerCodeIssued(), used}, when: use("ab12", false, later), fails: tenants.ErrCodeUsed},
		"use one of before":       {given: []tenants.Event{ownerCodeIssued(), newer}, when: use("ab12", false, later), fails: tenants.ErrCode},
		"use another":             {given: given, when: use("ffff", false, later), fails: tenants.ErrCode},
		"use nothing":             {when: use("", false, later), fails: tenants.ErrCode},
		"use too late":            {given: given, when: use("ab12", false, noon.Add(tenants.OwnerCodeLifetime)), fails: tenants.ErrCodeExpired},
		"use when somebody is in": {given: given, when: use("ab12", true, later), fails: tenants.ErrCodeRevoked},
	})
}
