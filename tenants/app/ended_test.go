package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

// Whoever was removed, or signed out elsewhere, while the broker is away is led to the sign-in: the news is not here yet, so
// their cookie still counts, but it is no error of ours, and they are not led in circles.
func TestEndedBeforeTheNewsIsHere(t *testing.T) {
	broker := startBroker(t, t.TempDir(), 0)
	clock := &watch{}
	w := world{
		database: testenv.Postgres(t), brokers: []string{broker.Addr()}, log: &journal{}, inForceWait: 50 * time.Millisecond, clock: clock.now,
	}
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.add(t, acme.organization, "olga@example.com", "owner")
	removed, removedID := p.settled(t, acme, "ada@example.com")
	renewed, renewedID := p.settled(t, acme, "bob@example.com")
	confirmed, confirmedID := p.settled(t, acme, "eve@example.com")
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	p.must(t, 200, "POST", "/v1/members/"+removedID+"/remove", "")
	for _, member := range []string{renewedID, confirmedID} {
		session := p.must(t, 200, "GET", "/v1/sessions?member="+member, "").items(t)[0]["id"].(string)
		p.must(t, 200, "POST", "/v1/sessions/"+session+"/revoke", `{"reason":"test"}`)
	}
	removed.isOut(t, "a removed member's page", removed.get(t, projectsPage))
	confirmed.isOut(t, "a confirmation", confirmed.post(t, confirmPage, map[string]string{"password": password}))
	clock.pass(tenants.RenewAfter)
	renewed.isOut(t, "a renewal", renewed.navigate(t, identity.RenewPath+"?to="+projectsPage))
}

// settled returns a browser in which a new member has signed in, once the news is here.
func (p *process) settled(t *testing.T, of tenant, email string) (*browser, string) {
	t.Helper()
	id, b := p.add(t, of.organization, email, "developer"), p.browser("192.0.2.1")
	b.signIn(t, email, password)
	testenv.Eventually(t, patience, func() error {
		if got := b.get(t, projectsPage); got.status != http.StatusOK {
			return fmt.Errorf("signed in, but the page answers %d", got.status)
		}
		return nil
	})
	return b, id
}

func (b *browser) isOut(t *testing.T, what string, got page) {
	t.Helper()
	if got.status != http.StatusSeeOther || got.header.Get("Location") != identity.SignInPath || b.secret() != "" {
		t.Errorf("%s: %d to %q, signed in: %t", what, got.status, got.header.Get("Location"), b.secret() != "")
	}
	if again := b.navigate(t, identity.SignInPath); again.status != http.StatusOK {
		t.Errorf("%s: then the sign-in answers %d", what, again.status)
	}
}
