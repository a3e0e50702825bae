package tenants_test

import (
	"testing"

	"github.com/weirlog/weir/tenants"
)

func sessionStarted() tenants.SessionStarted {
	return tenants.SessionStarted{
		Session: "ses_1", Organization: "org_1", Member: "mem_1", Role: tenants.Viewer, Imprint: imprint("ab12"),
		At: noon, ExpiresAt: noon.Add(tenants.SessionLasts),
	}
}

// A session is started once, for its member's organization and in the member's role, and ends once.
func TestSessionDecisions(t *testing.T) {
	start := func(s tenants.Session) ([]tenants.Event, error) {
		return s.Start(tenants.StartSession{
			ID: "ses_1", Imprint: imprint("ab12"), At: noon,
			Member: tenants.Member{ID: "mem_1", Organization: "org_1", Role: tenants.Viewer},
		})
	}
	end := func(s tenants.Session) ([]tenants.Event, error) {
		return s.End(tenants.Revoke{Reason: "signed out", At: later})
	}
	role := func(role tenants.Role) func(tenants.Session) ([]tenants.Event, error) {
		return func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, later) }
	}
	changed := tenants.SessionRoleChanged{Session: "ses_1", Role: tenants.Admin, At: later}
	started, ended := sessionStarted(), tenants.SessionEnded{Session: "ses_1", Reason: "signed out", At: later}
	decide(t, map[string]decision[tenants.Session]{
		"start":                   {when: start, then: []tenants.Event{started}},
		"start again":             {given: []tenants.Event{started}, when: start, fails: tenants.ErrReused},
		"end":                     {given: []tenants.Event{started}, when: end, then: []tenants.Event{ended}},
		"end again":               {given: []tenants.Event{started, ended}, when: end},
		"another role":            {given: []tenants.Event{started}, when: role(tenants.Admin), then: []tenants.Event{changed}},
		"the same role":           {given: []tenants.Event{started, changed}, when: role(tenants.Admin)},
		"another role at the end": {given: []tenants.Event{started, ended}, when: role(tenants.Admin)},
		"the role of nothing":     {when: role(tenants.Admin), fails: tenants.ErrNotFound},
		"end what is not":         {when: end, fails: tenants.ErrNotFound},
	})
}
