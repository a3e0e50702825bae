package app_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

var wholeKey = regexp.MustCompile(`weir_[0-9a-f]{48}`)

// A key gets its end and its limit by the form, and waits for its first
// event. It is rotated with a click, shows its recent users, and is renamed.
func TestKeyPages(t *testing.T) {
	w := newWorld(t)
	i, p, n := w.ingestor(t), w.start(t, operatorToken), w.follow(t)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "admin")
	created := b.post(t, apiKeysPage, map[string]string{"name": "pods", "project": acme.project, "environment": "prod", "form": "f1",
		"ends": "90", "rate_per_minute": "30", "access": "write"})
	secret := wholeKey.FindString(created.body)
	if created.status != 201 || !strings.Contains(created.body, "Waiting for the first event") || !strings.Contains(created.body, ">Check again</a>") ||
		!strings.Contains(created.text(), `request.Header.Set("x-api-key", "`+secret+`")`) {
		t.Fatalf("create a key: %d %s", created.status, created.body)
	}
	if got := n.awaitLookup(t, secret, nil); got.RatePerMinute != 30 || !got.ReadsNothing() {
		t.Errorf("the key is %+v, want one with a limit of 30 that only writes", got)
	}
	id := regexp.MustCompile(`/console/settings/api-keys/(key_[0-9a-f]+)/first-event`).FindStringSubmatch(created.body)[1]
	page := apiKeysPage + "/" + id
	ends := time.Now().UTC().AddDate(0, 0, 90).Format("2006-01-02")
	if got := b.get(t, page); got.status != 200 || !strings.Contains(got.body, ends) || !strings.Contains(got.body, "at most 30") || !strings.Contains(got.body, "Send logs, and read nothing") || strings.Contains(got.body, secret) {
		t.Errorf("the page of the key: %d %s", got.status, got.body)
	}
	if got := b.get(t, page+"/first-event"); got.status != 202 {
		t.Errorf("before the first event: %d %s", got.status, got.body)
	}
	at := time.Now().UTC()
	used := contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: id, Accepted: 1, FirstAcceptedAt: &at, LastUsedAt: at, Address: "192.0.2.7", Client: "checkout/1"}
	i.used(used)
	testenv.Eventually(t, timeout, func() error {
		if got := b.get(t, page+"/first-event"); got.status != 200 || !strings.Contains(got.body, "The first event came") {
			return fmt.Errorf("%w: %d %s", errNotYet, got.status, got.body)
		}
		return nil
	})
	if got := b.get(t, apiKeysPage); !strings.Contains(got.body, "from 192.0.2.7, <bdi>checkout/1</bdi>") {
		t.Errorf("the list does not say who used the key: %s", got.body)
	}

	if got := b.get(t, page+"/rotate"); got.status != 200 || !strings.Contains(got.body, ">Rotate</button>") {
		t.Errorf("the form to rotate: %d %s", got.status, got.body)
	}
	form := map[string]string{"overlap_seconds": "3600", "form": "f2"}
	rotated := b.post(t, page+"/rotate", form)
	successor := wholeKey.FindString(rotated.body)
	if rotated.status != 201 || successor == "" || successor == secret || !strings.Contains(rotated.body, "goes on until") {
		t.Fatalf("rotate: %d %s", rotated.status, rotated.body)
	}
	n.awaitLookup(t, secret, nil)
	n.awaitLookup(t, successor, nil)
	if got := b.post(t, page+"/rotate", form); got.status != 409 || wholeKey.MatchString(got.body) {
		t.Errorf("the same form again: %d %s", got.status, got.body)
	}
	if got := b.get(t, page); !strings.Contains(got.body, "Nobody has used this one since") {
		t.Errorf("the page of the rotated key: %s", got.body)
	}
	later := time.Now().Add(time.Second).UTC()
	used.Rejected, used.LastUsedAt, used.Address = 1, later, "192.0.2.8"
	i.used(used)
	testenv.Eventually(t, timeout, func() error {
		got := b.get(t, page)
		if !strings.Contains(got.body, "Requests with this one since then: 2, 1 of them rejected") || strings.Count(got.body, "since the rotation") != 1 {
			return fmt.Errorf("%w: %s", errNotYet, got.body)
		}
		return nil
	})

	if got := b.post(t, page+"/edit", map[string]string{"name": "Pods in Ulm", "rate_per_minute": "", "access": "full"}); got.status != 303 {
		t.Errorf("edit: %d %s", got.status, got.body)
	}
	if got := b.get(t, page); !strings.Contains(got.body, "Pods in Ulm") || !strings.Contains(got.body, "The API key was changed") || !strings.Contains(got.body, "and read all of the organization") || strings.Contains(got.body, "at most") {
		t.Errorf("the page after that: %s", got.body)
	}
}

// The page of an exposed key shows how it was exposed, and the remedy.
func TestExposedKeyPage(t *testing.T) {
	w := newWorld(t)
	i, p := w.ingestor(t), w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	i.exposed(acme, contract.ExposedPlainHTTP)
	p.awaitKey(t, acme.key, func(a answer) bool { return len(a.body["exposures"].([]any)) == 1 })
	for role, way := range map[string]string{"admin": ">Rotate it now</a>", "viewer": "Ask an owner or admin"} {
		got := p.signedIn(t, acme, role).get(t, apiKeysPage+"/"+acme.key)
		if !strings.Contains(got.body, "Arrived over plain HTTP from 192.0.2.7") || !strings.Contains(got.body, way) {
			t.Errorf("as %s: %s", role, got.body)
		}
	}
}

// An invalid end or limit of a key is refused
// beside its field, and input is kept.
func testKeyFormFaults(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	page := apiKeysPage + "/" + acme.key
	for name, c := range map[string]struct {
		path  string
		form  map[string]string
		wants []string
	}{
		"no date":             {apiKeysPage, map[string]string{"ends": "date", "ends_on": "soon"}, []string{`id="fault-ends_on"`, `value="soon"`}},
		"a date that is past": {apiKeysPage, map[string]string{"ends": "date", "ends_on": "2001-01-01"}, []string{`id="fault-ends_on"`}},
		"no such end":         {apiKeysPage, map[string]string{"ends": "9999"}, []string{`id="fault-ends"`}},
		"a limit in words":    {apiKeysPage, map[string]string{"rate_per_minute": "many"}, []string{`id="fault-rate_per_minute"`, `value="many"`}},
		"a limit of nothing":  {page + "/edit", map[string]string{"name": "kept", "rate_per_minute": "0"}, []string{`id="fault-rate_per_minute"`, `value="kept"`}},
		"no such access":      {apiKeysPage, map[string]string{"access": "read"}, []string{`id="fault-access"`}},
		"to no such access":   {page + "/edit", map[string]string{"access": "read"}, []string{`id="fault-access"`}},
		"no name":             {page + "/edit", map[string]string{"name": " "}, []string{`id="fault-name"`}},
		"no such overlap":     {page + "/rotate", map[string]string{"overlap_seconds": "x"}, []string{`id="fault-overlap_seconds"`}},
		"too long":            {page + "/rotate", map[string]string{"overlap_seconds": "604801"}, []string{`id="fault-overlap_seconds"`}},
	} {
		form := map[string]string{"name": "k", "project": acme.project, "environment": "dev"}
		for field, value := range c.form {
			form[field] = value
		}
		got := b.post(t, c.path, form)
		if got.status != 422 {
			t.Errorf("%s: %d", name, got.status)
		}
		for _, want := range c.wants {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s: the page lacks %s", name, want)
			}
		}
	}
	created := b.post(t, apiKeysPage, map[string]string{"name": "k", "project": acme.project, "environment": "dev", "ends": "date", "ends_on": "2099-12-31"})
	if created.status != 201 {
		t.Errorf("a date that can be: %d", created.status)
	}
	if !strings.Contains(b.get(t, apiKeysPage).body, `datetime="2100-01-01T00:00:00Z"`) {
		t.Error("the key does not work until the end of its last day")
	}
	b.post(t, page+"/revoke", nil)
	if got := b.post(t, page+"/rotate", map[string]string{"overlap_seconds": "0"}); got.status != 409 || !strings.Contains(got.body, "is revoked") {
		t.Errorf("rotate what is revoked: %d %s", got.status, got.body)
	}
}
