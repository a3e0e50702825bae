package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/passkeytest"
)

const confirmPage = "/console/confirm"

// A member who was removed, or signed out elsewhere, during an outage
// of the broker is redirected to the sign-in: the cookie still counts
// here, but that is neither a server error nor an endless redirect.
func testEndedBeforeThatIsConsumed(t *testing.T, p *process, clock *watch, acme tenant) (during func(*testing.T)) {
	removed, removedID := p.signedInEverywhere(t, acme, "ada@example.com", "developer")
	renewed, renewedID := p.signedInEverywhere(t, acme, "bob@example.com", "developer")
	confirmed, confirmedID := p.signedInEverywhere(t, acme, "eve@example.com", "developer")
	adding, addingID := p.signedInEverywhere(t, acme, "mal@example.com", "developer")
	_, made := passkeytest.New(t, adding.asked(t, passkeysPage))
	return func(t *testing.T) {
		p.must(t, 200, "POST", "/v1/members/"+removedID+"/remove", "")
		for _, member := range []string{renewedID, confirmedID, addingID} {
			session := p.must(t, 200, "GET", "/v1/sessions?member="+member, "").items(t)[0]["id"].(string)
			p.must(t, 200, "POST", "/v1/sessions/"+session+"/revoke", `{"reason":"test"}`)
		}
		for what, act := range map[string]func(b *browser) page{
			"page":         func(b *browser) page { return b.get(t, projectsPage) },
			"confirmation": func(b *browser) page { return b.post(t, confirmPage, map[string]string{"password": password}) },
			"new password": func(b *browser) page {
				return b.post(t, accountPage+"/password", map[string]string{"current_password": password, "password": "battery staple horse"})
			},
			"question for a passkey": func(b *browser) page { return b.post(t, accountPage+"/passkeys/options", nil) },
			"answer for a passkey":   func(b *browser) page { return b.post(t, confirmPage+"/passkey/options", nil) },
		} {
			b := p.browser("192.0.2.1")
			b.Cookies = maps.Clone(removed.Cookies)
			b.isSignedOut(t, "a removed member's "+what, act(b))
		}
		confirmed.isSignedOut(t, "a confirmation", confirmed.post(t, confirmPage, map[string]string{"password": password}))
		adding.isSignedOut(t, "a new passkey", adding.post(t, passkeysPage, map[string]string{"name": "mine", "credential": made}))
		if kept := p.world.dump(t); strings.Contains(kept, "passkey_registered") {
			t.Error("a session that has ended leaves a passkey behind")
		}
		clock.pass(tenants.RenewAfter)
		renewed.isSignedOut(t, "a renewal", renewed.navigate(t, identity.RenewPath+"?to="+projectsPage))
	}
}

// A member who lost their role, or was removed, during an outage of the
// broker issues and changes nothing by a session that still has it.
func testRoleLostBeforeThatIsConsumed(t *testing.T, p *process, acme tenant) (during func(*testing.T)) {
	demoted, demotedID := p.signedInEverywhere(t, acme, "amy@example.com", "admin")
	lesser, lesserID := p.signedInEverywhere(t, acme, "ben@example.com", "owner")
	removed, removedID := p.signedInEverywhere(t, acme, "eva@example.com", "admin")
	return func(t *testing.T) {
		p.must(t, 200, "PATCH", "/v1/members/"+demotedID, `{"role":"viewer"}`)
		p.must(t, 200, "PATCH", "/v1/members/"+lesserID, `{"role":"admin"}`)
		p.must(t, 200, "POST", "/v1/members/"+removedID+"/remove", "")
		for who, b := range map[string]*browser{"demoted": demoted, "removed": removed} {
			for what, got := range b.tryChanges(t, acme) {
				if (who == "demoted") != (got.status == http.StatusForbidden) || (who == "removed") != (got.header.Get("Location") == identity.SignInPath) {
					t.Errorf("%s, %s: %d %s", who, what, got.status, got.header.Get("Location"))
				}
			}
		}
		token := func(scope string) int {
			return lesser.post(t, "/console/settings/service-tokens", map[string]string{"name": "t " + scope, "scopes": scope}).status
		}
		if admin, billing := token(tenants.ScopeTenantsAdmin), token(tenants.ScopeBillingRead); admin != 403 || billing != 201 {
			t.Errorf("who is no owner any more gives a token the scope of owners: %d, that of admins: %d", admin, billing)
		}
	}
}

// tryChanges requests one change of each kind that a viewer may not make.
func (b *browser) tryChanges(t *testing.T, of tenant) map[string]page {
	t.Helper()
	key, tokens := apiKeysPage+"/"+of.key, "/console/settings/service-tokens"
	return map[string]page{
		"rotate a key":     b.post(t, key+"/rotate", map[string]string{"overlap_seconds": "0"}),
		"change a key":     b.post(t, key+"/edit", map[string]string{"name": "mine"}),
		"revoke a key":     b.post(t, key+"/revoke", nil),
		"issue a key":      b.post(t, apiKeysPage, map[string]string{"name": "new", "project": of.project, "environment": "dev"}),
		"issue a token":    b.post(t, tokens, map[string]string{"name": "new", "scopes": tenants.ScopeBillingRead}),
		"revoke a token":   b.post(t, tokens+"/"+of.tokenID+"/revoke", nil),
		"create a project": b.post(t, projectsPage, map[string]string{"name": "New"}),
		"rename a project": b.post(t, projectsPage+"/"+of.project, map[string]string{"name": "Other"}),
		"rename all":       b.post(t, "/console/settings/organization", map[string]string{"name": "Other"}),
		"set the policy": b.post(t, "/console/settings/security",
			map[string]string{"leaked_keys": "notify", "plain_http_keys": "flag"}),
	}
}

// signedInEverywhere returns a browser with the session
// of a new member, once that is consumed here.
func (p *process) signedInEverywhere(t *testing.T, of tenant, email, role string) (*browser, string) {
	t.Helper()
	id, b := p.add(t, of.organization, email, role), p.browser("192.0.2.1")
	b.signIn(t, email, password)
	testenv.Eventually(t, timeout, func() error {
		if got := b.get(t, projectsPage); got.status != http.StatusOK {
			return fmt.Errorf("signed in, but the page answers %d", got.status)
		}
		return nil
	})
	return b, id
}

func (b *browser) isSignedOut(t *testing.T, what string, got page) {
	t.Helper()
	if got.status != http.StatusSeeOther || got.header.Get("Location") != identity.SignInPath || b.Session() != "" {
		t.Errorf("%s: %d to %q, signed in: %t", what, got.status, got.header.Get("Location"), b.Session() != "")
	}
	if again := b.navigate(t, identity.SignInPath); again.status != http.StatusOK {
		t.Errorf("%s: then the sign-in answers %d", what, again.status)
	}
}
