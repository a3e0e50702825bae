package isolation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

// A principal is one kind of caller: the credentials that it sends, and
// what they are worth. Most have one valid credential or none; some
// send several, of which the route chooses one.
type principal struct {
	name    string
	header  map[string]string
	cookies []*http.Cookie

	key     *tenant // whose API key is sent as an API key is, and valid
	access  string  // of that key; "": full
	token   *grant  // what a valid service token, sent as one is, stands for
	session *grant  // the same of a session
}

// A grant is what a token or a session gives access to.
type grant struct {
	of     *tenant // nil: the installation
	scopes []string
	role   string
	email  string
}

// scopes are all scopes that open a route.
var scopes = []string{"audit:read", "billing:read", "billing:write", "tenants:admin"}

func asKey(secret string) map[string]string { return map[string]string{"X-Api-Key": secret} }
func asToken(secret string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + secret}
}
func asSession(secret string) []*http.Cookie {
	return []*http.Cookie{{Name: identity.SessionCookie, Value: secret}}
}

// principals are all kinds of callers.
func (w *world) principals(t *testing.T, a, b *tenant) []principal {
	t.Helper()
	all := []principal{
		{name: "the operator", header: asToken(operatorToken), token: &grant{scopes: []string{"tenants:admin", "billing:read", "billing:write"}}},
		{name: "an API key of A", header: asKey(a.key), key: a},
		{name: "an API key of B", header: asKey(b.key), key: b},
		w.keyHolder(t, a, "project"), w.keyHolder(t, a, "write"), w.keyHolder(t, b, "project"),
	}
	for _, scope := range append(scopes, "x:y") {
		all = append(all, w.tokenHolder(t, a, "a token of A with "+scope, scope))
	}
	all = append(all, w.tokenHolder(t, b, "a token of B with all scopes", scopes...))
	for _, role := range tenants.Roles() {
		all = append(all, w.memberOf(t, a, string(role)))
	}
	all = append(all, w.memberOf(t, b, "owner"))
	return slices.Concat(all, w.worthless(t, a), several(all))
}

// keyHolder has a restricted API key.
func (w *world) keyHolder(t *testing.T, of *tenant, access string) principal {
	t.Helper()
	key := w.operate(t, "POST", "/v1/api-keys", map[string]any{"project": of.things["project"], "environment": "prod", "name": of.name + "'s key", "access": access})
	return principal{name: "a key of " + of.name + " with access " + access, header: asKey(key.get("key")), key: of, access: access}
}

func (w *world) tokenHolder(t *testing.T, of *tenant, name string, scopes ...string) principal {
	t.Helper()
	return principal{name: name, header: asToken(of.token(t, scopes...).get("token")), token: &grant{of: of, scopes: scopes}}
}

func (w *world) memberOf(t *testing.T, of *tenant, role string) principal {
	t.Helper()
	email := of.fill(t, "{new-email}")[0]
	of.member(t, role, email)
	return principal{name: fmt.Sprintf("the %s of %s", role, of.name), cookies: []*http.Cookie{w.signIn(t, email)},
		session: &grant{of: of, role: role, email: email}}
}

// several are callers that send several valid credentials. One for
// another kind of route is ignored.
func several(all []principal) []principal {
	find := func(name string) principal {
		return all[slices.IndexFunc(all, func(p principal) bool { return p.name == name })]
	}
	key, owner, token := find("an API key of B"), find("the owner of Acorn"), find("a token of B with all scopes")
	return []principal{
		{name: "an API key of B beside the session of A's owner", header: key.header, cookies: owner.cookies, key: key.key, session: owner.session},
		{name: "a token of B beside the session of A's owner", header: token.header, cookies: owner.cookies, token: token.token, session: owner.session},
	}
}

// worthless are callers whose credential is missing, no longer valid,
// or in the wrong place.
func (w *world) worthless(t *testing.T, a *tenant) []principal {
	t.Helper()
	digits := strings.Repeat("f", 48)
	token := a.token(t, "tenants:admin", "billing:read").get("token")
	session := w.memberOf(t, a, "admin").cookies[0].Value
	return []principal{
		{name: "nobody"},
		{name: "a stranger's API key", header: asKey("weir_" + digits)},
		{name: "a stranger's token", header: asToken("weirsvc_" + digits)},
		{name: "a stranger's session", cookies: asSession("weirses_" + digits)},
		{name: "a revoked API key of A", header: asKey(w.revokedKey(t, a))},
		{name: "an expired API key of A", header: asKey(w.expiredKey(t, a))},
		{name: "a revoked token of A", header: asToken(w.revokedToken(t, a))},
		{name: "an ended session of A", cookies: asSession(w.endedSession(t, a))},
		{name: "the hash of an API key of A", header: asKey(contract.CredentialKey(a.key))},
		{name: "an API key of A as a token", header: asToken(a.key)},
		{name: "an API key of A as a session", cookies: asSession(a.key)},
		{name: "an API key of A in another case", header: asKey(strings.ToUpper(a.key))},
		{name: "a token of A as an API key", header: asKey(token)},
		{name: "a token of A as a session", cookies: asSession(token)},
		{name: "a token of A with another scheme", header: map[string]string{"Authorization": "Basic " + token}},
		{name: "a session of A as an API key", header: asKey(session)},
		{name: "a session of A as a token", header: asToken(session)},
		{name: "a session of A in a cookie without the prefix", cookies: []*http.Cookie{{Name: "weir-session", Value: session}}},
	}
}

func (w *world) revokedKey(t *testing.T, of *tenant) string {
	t.Helper()
	key := of.issue(t, nil)
	w.operate(t, "POST", "/v1/api-keys/"+key.get("id")+"/revoke", map[string]any{"reason": "test"})
	w.refused(t, "api_key_revoked", asKey(key.get("key")))
	return key.get("key")
}

// expiredKey makes a key that expires at once, and waits for that.
func (w *world) expiredKey(t *testing.T, of *tenant) string {
	t.Helper()
	expires := time.Now().Add(time.Second)
	key := of.issue(t, &expires).get("key")
	w.refused(t, "api_key_expired", asKey(key))
	return key
}

func (w *world) revokedToken(t *testing.T, of *tenant) string {
	t.Helper()
	token := of.token(t, "tenants:admin", "billing:read")
	w.operate(t, "POST", "/v1/service-tokens/"+token.get("id")+"/revoke", map[string]any{"reason": "test"})
	testenv.Eventually(t, waitTimeout, func() error {
		return w.statusIs(t, request{method: "GET", path: "/v1/organizations/" + of.things["organization"] + "/balance", header: asToken(token.get("token"))}, 401)
	})
	return token.get("token")
}

func (w *world) endedSession(t *testing.T, of *tenant) string {
	t.Helper()
	email := of.fill(t, "{new-email}")[0]
	of.member(t, "owner", email)
	cookie := w.signIn(t, email)
	w.send(t, request{method: "POST", path: "/console/sign-out", header: map[string]string{"Sec-Fetch-Site": "same-origin"}, cookies: []*http.Cookie{cookie}})
	testenv.Eventually(t, waitTimeout, func() error {
		return w.statusIs(t, request{method: "GET", path: "/console/logs", cookies: []*http.Cookie{cookie}}, 303)
	})
	return cookie.Value
}

// refused waits until every module that accepts API keys refuses one
// with a code.
func (w *world) refused(t *testing.T, code string, header map[string]string) {
	t.Helper()
	for _, path := range []string{"/v1/logs", "/v1/projects/none/error-groups"} {
		testenv.Eventually(t, waitTimeout, func() error {
			if got := w.send(t, request{method: "GET", path: path, header: header}); got.get("code") != code {
				return fmt.Errorf("GET %s: %d %s, want %s", path, got.status, got.text, code)
			}
			return nil
		})
	}
}

func (w *world) statusIs(t *testing.T, r request, want int) error {
	t.Helper()
	if got := w.send(t, r); got.status != want {
		return fmt.Errorf("%s %s: %d %s, want %d", r.method, r.path, got.status, got.text, want)
	}
	return nil
}
