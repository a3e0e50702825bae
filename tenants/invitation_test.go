package tenants_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

func invitationMade() tenants.InvitationMade {
	return tenants.InvitationMade{
		Invitation: "inv_1", Organization: "org_1", Email: "bob@example.com", Role: tenants.Developer, By: "mem_1",
		Digest: digest("ab12"), At: noon, ExpiresAt: noon.Add(tenants.InvitationLifetime),
	}
}

func invite() tenants.Invite {
	return tenants.Invite{
		ID: "inv_1", Organization: "org_1", Email: " Bob@Example.com ", Role: tenants.Developer, By: "mem_1", ByRole: tenants.Admin,
		Digest: digest("ab12"), At: noon,
	}
}

// An invitation is created once; a repeated request
// gets no way to the code. Only owners invite owners.
func TestInviteDecisions(t *testing.T) {
	made := func(change func(*tenants.Invite)) func(tenants.Invitation) ([]tenants.Event, error) {
		return func(i tenants.Invitation) ([]tenants.Event, error) {
			cmd := invite()
			change(&cmd)
			return i.Make(cmd)
		}
	}
	same := func(*tenants.Invite) {}
	by := func(by, to tenants.Role) func(*tenants.Invite) {
		return func(c *tenants.Invite) { c.ByRole, c.Role = by, to }
	}
	given := []tenants.Event{invitationMade()}
	owner := invitationMade()
	owner.Role = tenants.Owner
	decide(t, map[string]decision[tenants.Invitation]{
		"invite":                             {when: made(same), then: []tenants.Event{invitationMade()}},
		"invite again":                       {given: given, when: made(same), fails: tenants.ErrShownOnce},
		"invite again, with another address": {given: given, when: made(func(c *tenants.Invite) { c.Email = "eve@example.com" }), fails: tenants.ErrReused},
		"invite again, to another role":      {given: given, when: made(by(tenants.Admin, tenants.Viewer)), fails: tenants.ErrReused},
		"an owner invites an owner":          {when: made(by(tenants.Owner, tenants.Owner)), then: []tenants.Event{owner}},
		"an admin invites an owner":          {when: made(by(tenants.Admin, tenants.Owner)), fails: tenants.ErrForbidden},
		"a developer invites a viewer":       {when: made(by(tenants.Developer, tenants.Viewer)), fails: tenants.ErrForbidden},
		"nobody invites":                     {when: made(by("", tenants.Viewer)), fails: tenants.ErrForbidden},
		"every fault at once":                {when: made(func(c *tenants.Invite) { *c = tenants.Invite{At: noon} }), faults: []string{"organization", "email", "role"}},
	})
}

// One person joins by an invitation, within
// its time and with the newest code.
func TestAcceptDecisions(t *testing.T) {
	accept := func(code, email string, at time.Time) func(tenants.Invitation) ([]tenants.Event, error) {
		return func(i tenants.Invitation) ([]tenants.Event, error) {
			return i.Accept(tenants.Accept{Code: code + "-hash", Email: email, Member: "mem_2", ByRole: tenants.Admin, At: at})
		}
	}
	end := noon.Add(tenants.InvitationLifetime)
	justBefore := end.Add(-time.Nanosecond)
	accepted := tenants.InvitationAccepted{Invitation: "inv_1", Member: "mem_2", At: later}
	resent := tenants.InvitationResent{Invitation: "inv_1", Digest: digest("cd34"), At: later, ExpiresAt: end.Add(time.Hour)}
	decide(t, map[string]decision[tenants.Invitation]{
		"join":                 {given: []tenants.Event{invitationMade()}, when: accept("ab12", " BOB@example.com", later), then: []tenants.Event{accepted}},
		"join in time":         {given: []tenants.Event{invitationMade()}, when: accept("ab12", "bob@example.com", justBefore), then: []tenants.Event{tenants.InvitationAccepted{Invitation: "inv_1", Member: "mem_2", At: justBefore}}},
		"join too late":        {given: []tenants.Event{invitationMade()}, when: accept("ab12", "bob@example.com", end), fails: tenants.ErrCodeExpired},
		"join as another":      {given: []tenants.Event{invitationMade()}, when: accept("ab12", "eve@example.com", later), faults: []string{"email"}},
		"join by another code": {given: []tenants.Event{invitationMade()}, when: accept("ffff", "bob@example.com", later), fails: tenants.ErrCode},
		"join twice":           {given: []tenants.Event{invitationMade(), accepted}, when: accept("ab12", "bob@example.com", later), fails: tenants.ErrCodeUsed},
		"join when revoked":    {given: []tenants.Event{invitationMade(), tenants.InvitationRevoked{Invitation: "inv_1", At: noon}}, when: accept("ab12", "bob@example.com", later), fails: tenants.ErrCodeRevoked},
		"join by nothing":      {when: accept("ab12", "bob@example.com", later), fails: tenants.ErrCode},
		"the code of before":   {given: []tenants.Event{invitationMade(), resent}, when: accept("ab12", "bob@example.com", later), fails: tenants.ErrCode},
		"the newest code":      {given: []tenants.Event{invitationMade(), resent}, when: accept("cd34", "bob@example.com", end), then: []tenants.Event{tenants.InvitationAccepted{Invitation: "inv_1", Member: "mem_2", At: end}}},
	})
}

// A closed invitation stays closed; an expired one can be sent again.
func TestInvitationEndsOnce(t *testing.T) {
	revoke := func(by tenants.Role) func(tenants.Invitation) ([]tenants.Event, error) {
		return func(i tenants.Invitation) ([]tenants.Event, error) { return i.Revoke(by, later) }
	}
	resend := func(by tenants.Role, at time.Time) func(tenants.Invitation) ([]tenants.Event, error) {
		return func(i tenants.Invitation) ([]tenants.Event, error) {
			return i.Resend(tenants.Resend{ByRole: by, Digest: digest("cd34"), At: at})
		}
	}
	owner := invitationMade()
	owner.Role = tenants.Owner
	late := noon.Add(2 * tenants.InvitationLifetime)
	revoked, accepted := tenants.InvitationRevoked{Invitation: "inv_1", At: later}, tenants.InvitationAccepted{Invitation: "inv_1", Member: "mem_2", At: noon}
	decide(t, map[string]decision[tenants.Invitation]{
		"revoke":                          {given: []tenants.Event{invitationMade()}, when: revoke(tenants.Admin), then: []tenants.Event{revoked}},
		"revoke again":                    {given: []tenants.Event{invitationMade(), revoked}, when: revoke(tenants.Admin)},
		"revoke what was accepted":        {given: []tenants.Event{invitationMade(), accepted}, when: revoke(tenants.Admin), fails: tenants.ErrSettled},
		"revoke as a viewer":              {given: []tenants.Event{invitationMade()}, when: revoke(tenants.Viewer), fails: tenants.ErrForbidden},
		"an admin revokes an owner's":     {given: []tenants.Event{owner}, when: revoke(tenants.Admin), fails: tenants.ErrForbidden},
		"revoke what is not":              {when: revoke(tenants.Owner), fails: tenants.ErrNotFound},
		"resend what has expired":         {given: []tenants.Event{invitationMade()}, when: resend(tenants.Admin, late), then: []tenants.Event{tenants.InvitationResent{Invitation: "inv_1", Digest: digest("cd34"), At: late, ExpiresAt: late.Add(tenants.InvitationLifetime)}}},
		"resend what was revoked":         {given: []tenants.Event{invitationMade(), revoked}, when: resend(tenants.Admin, later), fails: tenants.ErrSettled},
		"resend what was accepted":        {given: []tenants.Event{invitationMade(), accepted}, when: resend(tenants.Admin, later), fails: tenants.ErrSettled},
		"an admin sends an owner's again": {given: []tenants.Event{owner}, when: resend(tenants.Admin, later), fails: tenants.ErrForbidden},
		"resend what is not":              {when: resend(tenants.Owner, later), fails: tenants.ErrNotFound},
	})
}

// What became of an invitation is one word.
func TestInvitationStates(t *testing.T) {
	for want, given := range map[tenants.State][]tenants.Event{
		tenants.Open:     {invitationMade()},
		tenants.Accepted: {invitationMade(), tenants.InvitationAccepted{Invitation: "inv_1", Member: "mem_2", At: later}},
		tenants.Revoked:  {invitationMade(), tenants.InvitationRevoked{Invitation: "inv_1", At: later}},
	} {
		var invitation tenants.Invitation
		for _, event := range given {
			invitation.Apply(event)
		}
		if got := invitation.State(later); got != want {
			t.Errorf("state: %s, want %s", got, want)
		}
		late := want
		if want == tenants.Open {
			late = tenants.Expired
		}
		if got := invitation.State(noon.Add(tenants.InvitationLifetime)); got != late {
			t.Errorf("at the end of its time: %s, want %s", got, late)
		}
	}
}
