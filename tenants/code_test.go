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
		"use an earlier one":      {given: []tenants.Event{ownerCodeIssued(), newer}, when: use("ab12", false, later), fails: tenants.ErrCode},
		"use another":             {given: given, when: use("ffff", false, later), fails: tenants.ErrCode},
		"use nothing":             {when: use("", false, later), fails: tenants.ErrCode},
		"use too late":            {given: given, when: use("ab12", false, noon.Add(tenants.OwnerCodeLifetime)), fails: tenants.ErrCodeExpired},
		"use when somebody is in": {given: given, when: use("ab12", true, later), fails: tenants.ErrCodeRevoked},
	})
}

func resetCodeIssued() tenants.MemberResetCodeIssued {
	return tenants.MemberResetCodeIssued{Member: "mem_1", Digest: digest("ab12"), At: noon, ExpiresAt: noon.Add(tenants.ResetCodeLifetime)}
}

const otherHash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$b3RoZXI"

// A reset code is issued by a member's manager, works once and
// ends with the previous password, however that was changed.
func TestResetDecisions(t *testing.T) {
	issue := func(by tenants.Role) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.IssueResetCode(tenants.IssueResetCode{ByRole: by, Digest: digest("ab12"), At: noon})
		}
	}
	reset := func(code string, password tenants.Password, at time.Time) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.ResetPassword(tenants.ChangePassword{Code: code, Password: password, PasswordHash: otherHash, At: at})
		}
	}
	const good = "wrong horse battery"
	admin := memberAdded()
	admin.Role = tenants.Admin
	added := []tenants.Event{memberAdded()}
	given := []tenants.Event{memberAdded(), resetCodeIssued()}
	changed := tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: otherHash, Reset: true, At: later}
	byPassword := tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: "x", At: noon}
	newer := resetCodeIssued()
	newer.Digest = digest("cd34")
	removed := tenants.MemberRemoved{Member: "mem_1", At: noon}
	known := resetCodeIssued()
	known.By = "mem_2"
	as := func(role tenants.Role) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.ResetPassword(tenants.ChangePassword{Code: "ab12-hash", IssuerRole: role, Password: good, PasswordHash: otherHash, At: later})
		}
	}
	decide(t, map[string]decision[tenants.Member]{
		"an owner hands out an owner's":      {given: added, when: issue(tenants.Owner), then: []tenants.Event{resetCodeIssued()}},
		"an admin hands out an owner's":      {given: added, when: issue(tenants.Admin), fails: tenants.ErrForbidden},
		"an admin hands out an admin's":      {given: []tenants.Event{admin}, when: issue(tenants.Admin), then: []tenants.Event{resetCodeIssued()}},
		"a developer hands out an admin's":   {given: []tenants.Event{admin}, when: issue(tenants.Developer), fails: tenants.ErrForbidden},
		"one for nobody":                     {when: issue(tenants.Owner), fails: tenants.ErrNotFound},
		"one for somebody removed":           {given: []tenants.Event{memberAdded(), removed}, when: issue(tenants.Owner), fails: tenants.ErrNotFound},
		"reset":                              {given: given, when: reset("ab12-hash", good, later), then: []tenants.Event{changed}},
		"reset twice":                        {given: append(given[:2:2], changed), when: reset("ab12-hash", good, later), fails: tenants.ErrCode},
		"reset after a change":               {given: append(given[:2:2], byPassword), when: reset("ab12-hash", good, later), fails: tenants.ErrCode},
		"reset after the removal":            {given: append(given[:2:2], removed), when: reset("ab12-hash", good, later), fails: tenants.ErrCode},
		"reset by the code of before":        {given: append(given[:2:2], newer), when: reset("ab12-hash", good, later), fails: tenants.ErrCode},
		"reset by another code":              {given: given, when: reset("ffff-hash", good, later), fails: tenants.ErrCode},
		"its issuer is still admin":          {given: []tenants.Event{admin, known}, when: as(tenants.Admin), then: []tenants.Event{changed}},
		"its issuer was demoted":             {given: []tenants.Event{admin, known}, when: as(tenants.Developer), fails: tenants.ErrCodeRevoked},
		"its issuer was removed":             {given: []tenants.Event{admin, known}, when: as(""), fails: tenants.ErrCodeRevoked},
		"the member became owner since":      {given: []tenants.Event{admin, known, tenants.MemberRoleChanged{Member: "mem_1", Role: tenants.Owner, At: noon}}, when: as(tenants.Admin), fails: tenants.ErrCodeRevoked},
		"reset by no code where none is out": {given: added, when: reset("", good, later), fails: tenants.ErrCode},
		"reset too late":                     {given: given, when: reset("ab12-hash", good, noon.Add(tenants.ResetCodeLifetime)), fails: tenants.ErrCodeExpired},
		"reset to a password too short":      {given: given, when: reset("ab12-hash", "short", later), faults: []string{"password"}},
	})
}

// A new password replaces the one that was
// shown, not one that was changed meanwhile.
func TestPasswordDecisions(t *testing.T) {
	change := func(before string, password tenants.Password) func(tenants.Member) ([]tenants.Event, error) {
		return func(m tenants.Member) ([]tenants.Event, error) {
			return m.ChangePassword(tenants.ChangePassword{Before: before, Password: password, PasswordHash: otherHash, At: later})
		}
	}
	const good = "wrong horse battery"
	before := memberAdded().PasswordHash
	changed := tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: otherHash, At: later}
	decide(t, map[string]decision[tenants.Member]{
		"change":                   {given: []tenants.Event{memberAdded()}, when: change(before, good), then: []tenants.Event{changed}},
		"change meanwhile":         {given: []tenants.Event{memberAdded(), changed}, when: change(before, good), fails: tenants.ErrNotFound},
		"change when removed":      {given: []tenants.Event{memberAdded(), tenants.MemberRemoved{Member: "mem_1", At: noon}}, when: change(before, good), fails: tenants.ErrNotFound},
		"change of nobody":         {when: change("", good), fails: tenants.ErrNotFound},
		"a password that is short": {given: []tenants.Event{memberAdded()}, when: change(before, "short"), faults: []string{"password"}},
	})
}
