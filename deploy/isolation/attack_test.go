package isolation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	tenants "github.com/weirlog/weir/tenants/app"
	"github.com/weirlog/weir/tenants/passkeytest"
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
			"tier": "scale", "password_hash": "x", "digest": map[string]string{}, "__proto__": map[string]string{}, "Organization": b.things["organization"],
		} {
			r := p.request(t, a)
			var body map[string]any
			testenv.Must(t, json.Unmarshal([]byte(r.body), &body))
			body[member] = value
			encoded, err := json.Marshal(body)
			testenv.Must(t, err)
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

// ticketCookie identifies the browser's open challenge: for a passkey,
// or for an identity provider's token.
const ticketCookie = "__Host-weir-challenge"

// providerKnows is the address that the world's identity provider has verified.
const providerKnows = "provided@example.com"

// withProvider adds an identity provider to a world.
func withProvider(t *testing.T) (*mockoidc.MockOIDC, func(*allinone.Modules)) {
	t.Helper()
	provider, err := mockoidc.Run()
	testenv.Must(t, err)
	t.Cleanup(func() { _ = provider.Shutdown() })
	return provider, func(set *allinone.Modules) {
		set.Tenants.OIDC = tenants.OIDCConfig{Issuer: provider.Issuer(), ClientID: provider.ClientID, ClientSecret: httpapi.Secret(provider.ClientSecret), Name: "Id"}
	}
}

// A visitor is a browser that keeps its cookies.
type visitor struct {
	world   *world
	answers *journal
	cookies map[string]*http.Cookie
	tickets []canary
}

// visit sends a request as the console's pages do, and keeps the
// cookies it gets.
func (v *visitor) visit(t *testing.T, method, path string, form url.Values) answer {
	t.Helper()
	r := request{method: method, path: path, body: form.Encode(), header: map[string]string{"Sec-Fetch-Site": "same-origin"}}
	for _, cookie := range v.cookies {
		r.cookies = append(r.cookies, cookie)
	}
	got := v.world.send(t, r)
	if got.status >= http.StatusBadRequest { // what leads on sets the cookies that it has to
		fmt.Fprintln(v.answers, got.status, got.header, got.text)
	}
	for _, cookie := range got.cookies {
		v.cookies[cookie.Name] = cookie
		if cookie.Name == ticketCookie && cookie.Value != "" {
			v.tickets = append(v.tickets, canary{"a ticket of " + path, cookie.Value})
		}
	}
	return got
}

// byProvider signs a user in by the identity provider, and tries the
// same answer again, which is refused. It returns the secrets used.
func (w *world) byProvider(t *testing.T, answers *journal, of *tenant, provider *mockoidc.MockOIDC) []canary {
	t.Helper()
	of.member(t, "viewer", providerKnows)
	provider.QueueUser(&mockoidc.MockUser{Subject: "x", Email: providerKnows, EmailVerified: true})
	v := &visitor{world: w, answers: answers, cookies: map[string]*http.Cookie{}}
	asked := v.visit(t, "GET", "/console/sign-in/oidc", nil).header.Get("Location")
	back, found := strings.CutPrefix(sentBack(t, asked), "https://weir.example")
	if !found {
		t.Fatalf("the provider sends back to %q", back)
	}
	ticket := v.cookies[ticketCookie]
	if got := v.visit(t, "GET", back, nil); got.status != http.StatusSeeOther {
		t.Fatalf("GET %s: %d %s", back, got.status, got.brief())
	}
	session := v.cookies[identity.SessionCookie].Value
	v.cookies[ticketCookie] = ticket
	if got := v.visit(t, "GET", back, nil); got.status != http.StatusUnprocessableEntity {
		t.Errorf("the same answer again: %d %s", got.status, got.brief())
	}
	question, err := url.Parse(asked)
	testenv.Must(t, err)
	reply, err := url.Parse(back)
	testenv.Must(t, err)
	return append(v.tickets, canary{"the client's secret at the provider", provider.ClientSecret}, canary{"a session by the provider", session},
		canary{"the provider's code", reply.Query().Get("code")}, canary{"the state for the provider", question.Query().Get("state")},
		canary{"the nonce for the provider", question.Query().Get("nonce")})
}

// sentBack requests an address of the identity provider, and
// returns its redirect.
func sentBack(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Get(address)
	testenv.Must(t, err)
	testenv.Must(t, got.Body.Close())
	return got.Header.Get("Location")
}

// challengeOf returns the challenge for a passkey.
func challengeOf(t *testing.T, question string) string {
	t.Helper()
	var asked struct {
		PublicKey struct{ Challenge string }
	}
	testenv.Must(t, json.Unmarshal([]byte(question), &asked))
	if asked.PublicKey.Challenge == "" {
		t.Fatalf("no challenge in %s", question)
	}
	return asked.PublicKey.Challenge
}

// byPasskey adds a passkey to a user's account, signs in by it, and
// tries the same answer again, which is refused. It returns the
// secrets: challenges, their tickets, and the proofs.
func (w *world) byPasskey(t *testing.T, answers *journal, of *tenant) (secrets []canary) {
	t.Helper()
	const passkeys, signIn = "/console/settings/account/passkeys", "/console/sign-in/passkey"
	v := &visitor{world: w, answers: answers, cookies: map[string]*http.Cookie{identity.SessionCookie: w.memberOf(t, of, "owner").cookies[0]}}
	options := v.visit(t, "POST", passkeys+"/options", nil).text
	laptop, made := passkeytest.New(t, options)
	if got := v.visit(t, "POST", passkeys, url.Values{"name": {"Laptop"}, "credential": {made}}); got.status != http.StatusSeeOther {
		t.Fatalf("add a passkey: %d %s", got.status, got.brief())
	}
	delete(v.cookies, identity.SessionCookie)
	question := v.visit(t, "POST", signIn+"/options", nil).text
	proof := url.Values{"credential": {laptop.Answer(t, passkeytest.Site, question)["credential"]}}
	for _, want := range []int{http.StatusSeeOther, http.StatusUnprocessableEntity} {
		ticket := v.cookies[ticketCookie]
		if got := v.visit(t, "POST", signIn, proof); got.status != want {
			t.Fatalf("sign in by a passkey: %d %s, want %d", got.status, got.brief(), want)
		}
		v.cookies[ticketCookie] = ticket
	}
	v.visit(t, "POST", signIn+"/options", nil) // that nobody answers
	return append(v.tickets, canary{"a session by a passkey", v.cookies[identity.SessionCookie].Value},
		canary{"the question for a new passkey", challengeOf(t, options)}, canary{"the question for a passkey", challengeOf(t, question)},
		canary{"a proof by a passkey", signatureOf(t, proof.Get("credential"))})
}

// signatureOf returns the proof in an authenticator's answer that it
// has a passkey.
func signatureOf(t *testing.T, credential string) string {
	t.Helper()
	var proof struct{ Response struct{ Signature string } }
	testenv.Must(t, json.Unmarshal([]byte(credential), &proof))
	return proof.Response.Signature
}
