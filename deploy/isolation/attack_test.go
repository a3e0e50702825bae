package isolation

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
)

// A change is refused, without effect, when the browser reports that
// another site sent it, whatever the body's type. Every form of the
// console is tried.
func testForgery(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	owner := w.memberOf(t, a, "owner")
	for _, p := range policies {
		method, path, _ := strings.Cut(p.route, " ")
		if !strings.HasPrefix(path, "/console") || method == http.MethodGet {
			continue
		}
		r := p.request(t, a)
		before := w.events(t, a.things["organization"])
		for name, header := range map[string]map[string]string{
			"another site":            {"Sec-Fetch-Site": "cross-site"},
			"a neighboring host":      {"Sec-Fetch-Site": "same-site"},
			"an older browser":        {"Origin": "https://evil.example"},
			"a page without origin":   {"Origin": "null"},
			"another scheme and port": {"Origin": "http://weir.example:8080"},
			"a plain text form":       {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
			"JSON of another site":    {"Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"},
		} {
			r.header, r.cookies = header, owner.cookies
			if got := w.send(t, r); got.status != http.StatusForbidden {
				t.Errorf("%s sent by %s: %d %s", p.route, name, got.status, got.brief())
			}
		}
		if after := w.events(t, a.things["organization"]); after != before {
			t.Errorf("%s: forged requests changed something", p.route)
		}
	}
}

// The session after the sign-in is not one that was planted in the
// browser before; neither a planted nor a replaced one opens anything.
func testSessionFixation(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	email := a.fill(t, "{new-email}")[0]
	a.member(t, "owner", email)
	planted := asSession("weirses_" + strings.Repeat("a", 48))
	got := w.send(t, request{method: "POST", path: "/console/sign-in", cookies: planted, header: map[string]string{"Sec-Fetch-Site": "same-origin"},
		body: url.Values{"email": {email}, "password": {password}}.Encode()})
	i := slices.IndexFunc(got.cookies, func(c *http.Cookie) bool { return c.Name == identity.SessionCookie })
	if i < 0 || got.cookies[i].Value == planted[0].Value || got.cookies[i].Value == "" {
		t.Fatalf("after the sign-in the session is %v", got.cookies)
	}
	if c := got.cookies[i]; !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
	if err := w.statusIs(t, request{method: "GET", path: "/console/settings", cookies: planted}, http.StatusSeeOther); err != nil {
		t.Error(err)
	}
}

// Every page has headers against framing, sniffing and scripts, for
// every caller and answer.
func testHeadersOfPages(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	owner := w.memberOf(t, a, "owner")
	for _, p := range policies {
		if method, path, _ := strings.Cut(p.route, " "); method != http.MethodGet || !strings.HasPrefix(path, "/console") || strings.HasPrefix(path, "/console/assets") {
			continue
		}
		for _, caller := range []principal{{name: "nobody"}, owner} {
			got := w.send(t, caller.sends(p.request(t, a)))
			policy := got.header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") ||
				got.header.Get("X-Frame-Options") != "DENY" || got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") == "" {
				t.Errorf("%s as %s: %d with headers %v", p.route, caller.name, got.status, got.header)
			}
		}
	}
}

// No address, host or parameter redirects to another site.
func testOpenRedirects(t *testing.T, w *world) {
	owner := w.memberOf(t, w.tenant(t, "Acorn"), "owner")
	evil := []string{"https://evil.example", "//evil.example", `/\evil.example`, "/%5Cevil.example", "/\t/evil.example", "javascript:alert(1)", "http:evil.example", "https:/evil.example"}
	for _, target := range evil {
		for _, path := range []string{"/console/session/renew?to=", "/console/confirm?to=", "/console/sign-in?to=", "/console?to="} {
			got := w.send(t, owner.sends(request{method: "GET", path: path + url.QueryEscape(target)}))
			to, err := url.Parse(got.header.Get("Location"))
			if err != nil || to.Host != "" || to.Scheme != "" || strings.HasPrefix(to.Path, "//") || strings.HasPrefix(to.Path, `/\`) {
				t.Errorf("GET %s%s leads to %q", path, target, got.header.Get("Location"))
			}
		}
	}
	for _, path := range []string{"//evil.example/console", "/console//evil.example", "/console/%2f%2fevil.example", "/console/../v1/projects", "/console/settings/..%2fapi-keys"} {
		got := w.send(t, owner.sends(request{method: "GET", path: path, header: map[string]string{"X-Forwarded-Host": "evil.example"}}))
		if to, err := url.Parse(got.header.Get("Location")); err != nil || to.Host != "" || got.status == http.StatusOK {
			t.Errorf("GET %s: %d to %q", path, got.status, got.header.Get("Location"))
		}
	}
}

// Bodies set only documented members: others, which would give more
// rights, are refused by name and change nothing.
func testMassAssignment(t *testing.T, w *world) {
	a, b := w.tenant(t, "Acorn"), w.tenant(t, "Birch")
	admin := w.tokenHolder(t, a, "an admin of A", "tenants:admin")
	for _, p := range policies {
		if p.body == "" || !strings.HasPrefix(p.body, "{") || p.who.line != `tokens("tenants:admin")` {
			continue
		}
		for member, value := range map[string]any{
			"id": "chosen", "state": "active", "hash": strings.Repeat("a", 64), "created_at": "2001-01-01T00:00:00Z", "key": "weir_" + strings.Repeat("a", 48),
			"tier": "scale", "password_hash": "x", "imprint": map[string]string{}, "__proto__": map[string]string{}, "Organization": b.things["organization"],
		} {
			r := p.request(t, a)
			var body map[string]any
			must(t, json.Unmarshal([]byte(r.body), &body))
			body[member] = value
			encoded, err := json.Marshal(body)
			must(t, err)
			r.body = string(encoded)
			before := w.events(t, a.things["organization"])
			got := w.send(t, admin.sends(r))
			if got.status != http.StatusBadRequest || !strings.Contains(got.text, "/"+member) || w.events(t, a.things["organization"]) != before {
				t.Errorf("%s with %q: %d %s", p.route, member, got.status, got.brief())
			}
		}
	}
}

// The sign-in answers wrong passwords and unknown addresses alike: the
// page does not show who is a member.
func testNobodyIsEnumerated(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	email := a.fill(t, "{new-email}")[0]
	a.member(t, "owner", email)
	try := func(email string) string {
		got := w.send(t, request{method: "POST", path: "/console/sign-in", header: map[string]string{"Sec-Fetch-Site": "same-origin"},
			body: url.Values{"email": {email}, "password": {"wrong " + password}}.Encode()})
		return got.without(email)
	}
	if known, unknown := try(email), try("nobody@example.com"); known != unknown {
		t.Errorf("a member with a wrong password is answered\n%s\nnobody\n%s", known, unknown)
	}
}

// Unknown methods of a route are refused, nothing overrides a method,
// and a request that is too large is refused as such.
func testMethodsAndSizes(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	owner := w.memberOf(t, a, "owner")
	before := w.events(t, a.things["organization"])
	for _, header := range []map[string]string{{"X-HTTP-Method-Override": "POST"}, {"X-Method-Override": "DELETE"}, {"X-HTTP-Method": "PUT"}} {
		r := owner.sends(request{method: "GET", path: "/console/settings/projects?_method=POST&name=P"})
		for name, value := range header {
			r.header[name] = value
		}
		w.send(t, r)
	}
	for _, method := range []string{"PUT", "DELETE", "TRACE", "OPTIONS", "MADEUP"} {
		if got := w.send(t, owner.sends(request{method: method, path: "/console/settings/projects"})); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s of a page: %d %s", method, got.status, got.brief())
		}
	}
	large := owner.sends(request{method: "POST", path: "/console/settings/projects", body: "name=" + strings.Repeat("x", 1<<20)})
	if got := w.send(t, large); got.status/100 != 4 {
		t.Errorf("a form of a mebibyte: %d %s", got.status, got.brief())
	}
	if got := w.send(t, owner.sends(request{method: "HEAD", path: "/console/settings/projects"})); got.status != http.StatusOK {
		t.Errorf("HEAD: %d", got.status)
	}
	if after := w.events(t, a.things["organization"]); after != before {
		t.Errorf("%d events came of requests that must not change anything", after-before)
	}
}
