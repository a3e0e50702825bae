package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A key and its successor both work during the overlap,
// everywhere, for the same; then the old one expires.
func testRotation(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	p.must(t, 200, "PATCH", "/v1/api-keys/"+acme.key, `{"name":"Checkout","rate_per_minute":30}`)
	testenv.Eventually(t, timeout, func() error {
		if got := n.awaitLookup(t, acme.secret, nil); got.RatePerMinute != 30 {
			return fmt.Errorf("the limit in force is %d, want 30", got.RatePerMinute)
		}
		return nil
	})
	rotated := p.must(t, 201, "POST", "/v1/api-keys/"+acme.key+"/rotate", `{"overlap_seconds":3600}`)
	old, successor := n.awaitLookup(t, acme.secret, nil), n.awaitLookup(t, rotated.get("key"), nil)
	if old.ID = successor.ID; text(old) != text(successor) {
		t.Errorf("the successor is %+v, want it to be as %+v", successor, old)
	}
	for name, want := range map[string]string{"name": "Checkout", "replaces": acme.key, "environment": "prod"} {
		if rotated.get(name) != want {
			t.Errorf("%s of the successor is %q, want %q", name, rotated.get(name), want)
		}
	}
	before, _ := rotated.body["rotated"].(map[string]any)
	ends, err := time.Parse(time.RFC3339Nano, before["expires_at"].(string))
	if err != nil || before["rotated_to"] != rotated.get("id") || before["state"] != "active" || time.Until(ends) > time.Hour {
		t.Errorf("the old key is %v, %v", before, err)
	}
	at := p.must(t, 201, "POST", "/v1/api-keys/"+rotated.get("id")+"/rotate", `{"overlap_seconds":0}`)
	n.awaitLookup(t, rotated.get("key"), identity.ErrExpired)
	n.awaitLookup(t, at.get("key"), nil)
}

var errNotYet = errors.New("not yet")

// A key's access is limited from its creation or its
// change on, everywhere; its successor has the same.
func testAccessOfKeys(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	if got := n.awaitLookup(t, acme.secret, nil); got.Access != "" || got.ReadsNothing() {
		t.Errorf("a key of which nothing was said: %+v", got)
	}
	made := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": acme.project, "environment": "dev", "name": "n", "access": "write"}))
	if got := n.awaitLookup(t, made.get("key"), nil); made.get("access") != "write" || !got.ReadsNothing() {
		t.Errorf("a key that only writes is told as %s, and known as %+v", made.text, got)
	}
	if got := p.must(t, 200, "PATCH", "/v1/api-keys/"+made.get("id"), `{"access":"project"}`); got.get("access") != "project" {
		t.Errorf("changed to %s", got.text)
	}
	testenv.Eventually(t, timeout, func() error { // another service reads the change a moment later
		if project, alone := n.awaitLookup(t, made.get("key"), nil).OnlyProject(); !alone || project != acme.project {
			return fmt.Errorf("the key reads %q alone: %t", project, alone)
		}
		return nil
	})
	rotated := p.must(t, 201, "POST", "/v1/api-keys/"+made.get("id")+"/rotate", `{"overlap_seconds":3600}`)
	if got := n.awaitLookup(t, rotated.get("key"), nil); rotated.get("access") != "project" || got.Access != "project" {
		t.Errorf("the successor is told as %s, and known as %+v", rotated.text, got)
	}
	for _, body := range []string{`{"access":"read"}`, `{"access":""}`} {
		if got := p.call(t, operatorToken, "PATCH", "/v1/api-keys/"+made.get("id"), body); got.status != 400 || pointersOf(got)[0] != "/access" {
			t.Errorf("PATCH %s: %d %s", body, got.status, got.text)
		}
		wanted := text(map[string]any{"project": acme.project, "environment": "dev", "name": "n"})
		if got := p.call(t, operatorToken, "POST", "/v1/api-keys", wanted[:len(wanted)-1]+","+body[1:]); got.status != 400 || pointersOf(got)[0] != "/access" {
			t.Errorf("POST %s: %d %s", body, got.status, got.text)
		}
	}
	audited := p.must(t, 200, "GET", "/v1/audit-events?organization="+acme.organization+"&limit=1000", "")
	if !strings.Contains(audited.text, `"api_key.access_changed"`) {
		t.Errorf("the audit lacks the change: %s", audited.text)
	}
}
