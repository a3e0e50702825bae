package http

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

const shop, elsewhere = "https://shop.example", "https://elsewhere.example"

// withKey puts a state of the tests' key in force.
func withKey(t *testing.T, in *Intake, change func(*contract.Credential)) {
	t.Helper()
	credential := contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", Environment: "prod", State: contract.CredentialActive, Version: 2}
	change(&credential)
	value, err := json.Marshal(credential)
	testenv.Must(t, err)
	testenv.Must(t, in.Service.Credentials.Apply(contract.CredentialKey(secret), value))
}

func ofShop(c *contract.Credential) {
	c.Origins, c.Access, c.RatePerMinute = []string{shop}, contract.AccessWrite, 60
}

func preflight(in *Intake, origin string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodOptions, "/v1/logs", http.NoBody)
	r.Header.Set("Origin", origin)
	r.Header.Set("Access-Control-Request-Method", "POST")
	w := httptest.NewRecorder()
	httpapi.Handle(in.preflight).ServeHTTP(w, r)
	return w
}

// A browser lets a page send if an active key lists its origin.
func TestPreflight(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	if w := preflight(in, shop); w.Code != http.StatusForbidden || w.Header().Get(headerAllowOrigin) != "" {
		t.Errorf("without such a key: %d %v", w.Code, w.Header())
	}
	withKey(t, in, ofShop)
	w := preflight(in, shop)
	if w.Code != http.StatusNoContent || w.Header().Get(headerAllowOrigin) != shop || w.Header().Get("Access-Control-Allow-Methods") != "POST" ||
		w.Header().Get("Access-Control-Allow-Headers") != "*" || w.Header().Get("Vary") != "Origin" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, origin := range []string{elsewhere, "null", ""} {
		if w := preflight(in, origin); w.Code != http.StatusForbidden || w.Header().Get(headerAllowOrigin) != "" {
			t.Errorf("from %q: %d %v", origin, w.Code, w.Header())
		}
	}
	withKey(t, in, func(c *contract.Credential) { ofShop(c); c.State, c.Version = contract.CredentialRevoked, 3 })
	if w := preflight(in, shop); w.Code != http.StatusForbidden {
		t.Errorf("with a revoked key: %d", w.Code)
	}
}

// A key of web pages works from its own pages alone, and its entries are
// marked, whatever they and the request say.
func TestPages(t *testing.T) {
	const entry = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"m"`
	for _, c := range []struct {
		name, origin, body string
		headers            []string
		code               int
		kept               string
	}{
		{"its page", shop, entry + `}`, nil, 200, entry + `,"metadata":{"untrusted_client":true}}`},
		{"with metadata", shop, entry + `,"metadata":{"a":1}}`, nil, 200, entry + `,"metadata":{"a":1,"untrusted_client":true}}`},
		{"that denies it", shop, entry + `,"metadata":{"untrusted_client":false,"a":1}}`, nil, 200, entry + `,"metadata":{"untrusted_client":true,"a":1}}`},
		{"that denies it in escapes", shop, entry + `,"metadata":{"untrusted\u005fclient":0}}`, nil, 200, entry + `,"metadata":{"untrusted\u005fclient":true}}`},
		{"with empty metadata", shop, entry + `,"metadata":{ }}`, nil, 200, entry + `,"metadata":{"untrusted_client":true}}`},
		{"with no metadata", shop, entry + `,"metadata":null}`, nil, 200, entry + `,"metadata":{"untrusted_client":true}}`},
		{"that asks to be strict", shop, entry + `}`, []string{"Prefer", "handling=strict"}, 200, entry + `,"metadata":{"untrusted_client":true}}`},
		{"as programs send it", shop, strings.Replace(entry, "info", "INFO", 1) + `}`, nil, 200, entry + `,"metadata":{"untrusted_client":true}}`},
		{"with metadata of another type", shop, entry + `,"metadata":[]}`, nil, 400, ""},
		{"another page", elsewhere, entry + `}`, nil, 403, ""},
		{"a program", "", entry + `}`, nil, 403, ""},
	} {
		log := new(textLog)
		in := newIntake(t, log, plenty)
		withKey(t, in, ofShop)
		headers := c.headers
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		w := serve(in, newPost(strings.NewReader(`{"logs":[`+c.body+`]}`), headers...))
		if w.Code != c.code || strings.TrimSuffix(log.lines, "\n") != c.kept {
			t.Errorf("%s: %d %s, kept %s", c.name, w.Code, w.Body, log.lines)
		}
		if allowed := w.Header().Get(headerAllowOrigin); allowed != "" && allowed != shop || c.origin == shop && allowed == "" {
			t.Errorf("%s: the page %q may read what is for %q", c.name, c.origin, allowed)
		}
	}
}

// A page can read why its key fails. No page can use the keys of programs.
func TestPagesReadAnswers(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	withKey(t, in, ofShop)
	for name, c := range map[string]struct {
		headers []string
		code    int
	}{
		"an unknown key": {[]string{"X-Api-Key", "weir_" + strings.Repeat("00", 24)}, 401},
		"no key":         {[]string{"X-Api-Key", ""}, 401},
		"no JSON":        {[]string{"Content-Type", "text/plain"}, 400},
	} {
		w := serve(in, newPost(strings.NewReader(`{"logs":[]}`), append(c.headers, "Origin", shop)...))
		if w.Code != c.code || w.Header().Get(headerAllowOrigin) != shop {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	w := serve(in, newPost(strings.NewReader(`{"api_key":"`+secret+`","logs":[{"level":"info","message":"m"}]}`), "X-Api-Key", "", "Origin", shop))
	if w.Code != http.StatusForbidden {
		t.Errorf("a key of web pages in the body: %d %s", w.Code, w.Body)
	}
	withKey(t, in, func(c *contract.Credential) { c.Version = 3 })
	if w := serve(in, newPost(bytes.NewReader(body(1)), "Origin", shop)); w.Code != http.StatusOK || w.Header().Get(headerAllowOrigin) != "" {
		t.Errorf("a program's key: %d %v", w.Code, w.Header())
	}
}

// The idempotency key of one visitor does not stand in the way of another,
// and a batch is known again from whatever address it is sent.
func TestPagesHaveSeparateIdempotencyKeys(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	withKey(t, in, ofShop)
	send := func(address, message string) *httptest.ResponseRecorder {
		r := newPost(strings.NewReader(`{"logs":[{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"`+message+`"}]}`), "Origin", shop, "Idempotency-Key", "1")
		r.RemoteAddr = address
		return serve(in, r)
	}
	for _, c := range []struct {
		address, message string
		code             int
		replayed         string
	}{
		{"192.0.2.1:1", "a", 200, ""}, {"192.0.2.2:2", "b", 200, ""}, {"192.0.2.3:1", "a", 200, "true"}, {"192.0.2.1:1", "b", 200, "true"},
	} {
		if w := send(c.address, c.message); w.Code != c.code || w.Header().Get("Idempotency-Replayed") != c.replayed {
			t.Errorf("%s from %s: %d %s", c.message, c.address, w.Code, w.Body)
		}
	}
}

// What pages send without effect stops their address, and not the organization.
func TestWasteOfPages(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	withKey(t, in, func(c *contract.Credential) { ofShop(c); c.RatePerMinute = 0 })
	in.Service.Clients.LimitWaste(fairshare.Rate{Burst: 20 << 20, PerSecond: 1})
	in.Service.Gate.LimitWaste(fairshare.Rate{Burst: 1, PerSecond: 1})
	waste := func(address string) int {
		r := newPost(strings.NewReader(strings.Repeat("{", 5<<20)), "Origin", shop)
		r.RemoteAddr = address
		return serve(in, r).Code
	}
	for n := 0; waste("192.0.2.1:1") != http.StatusTooManyRequests; n++ {
		if n > 59 {
			t.Fatal("an address may send what is nothing without end")
		}
	}
	if code := waste("198.51.100.1:1"); code != http.StatusBadRequest {
		t.Errorf("another visitor: %d", code)
	}
	withKey(t, in, func(c *contract.Credential) { c.Version = 3 })
	if w := serve(in, newPost(bytes.NewReader(body(1)))); w.Code != http.StatusOK {
		t.Errorf("a program of the organization: %d %s", w.Code, w.Body)
	}
}

// A key can be lenient by itself, unless a request prefers otherwise.
func TestLenientKey(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	withKey(t, in, func(c *contract.Credential) { c.Lenient = true })
	const lines = `{"timestamp":"2026-01-31T12:00:00+00:00","level":"INFO","message":"m"}`
	if w := serve(in, newPost(strings.NewReader(lines), "Content-Type", "application/x-ndjson")); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), `"normalized":1`) || w.Header().Get("Preference-Applied") != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := serve(in, newPost(strings.NewReader(`{"logs":[`+lines+`]}`), "Prefer", "handling=strict")); w.Code != http.StatusBadRequest {
		t.Errorf("strict by preference: %d %s", w.Code, w.Body)
	}
}
