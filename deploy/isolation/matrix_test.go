package isolation

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
)

// Every route has a policy, every policy a route, and the gateway leads to
// every route: one that it sent elsewhere would be open or dead, unnoticed.
func testEveryRouteHasAPolicy(t *testing.T, w *world) {
	routes, listed := w.routes(t), map[string]bool{}
	for _, p := range policies {
		listed[p.route] = true
		if _, found := routes[p.route]; !found {
			t.Errorf("there is no route %q any more: remove its line from policies in deploy/isolation/policy_test.go", p.route)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(routes)) {
		if !listed[route] && !slices.Contains(unreached, route) {
			t.Errorf("%s has no policy. Say who may use it: add a line like this to policies in deploy/isolation/policy_test.go, "+
				"with who = keys, readers, operators, tokens(scope), members(permission), visitors or everybody:\n\t%s", route, suggestion(route))
		}
		_, path, _ := strings.Cut(route, " ")
		if owner, known := gateway.Owner(path); !slices.Contains(routes[route], owner) && !(!known && slices.Contains(append(unreached, ownOfGateway...), route)) {
			t.Errorf("%s is a route of %v, but the gateway leads to %q: see nouns and pages in deploy/gateway/owner.go", route, routes[route], owner)
		}
	}
}

// suggestion is a policy line for a route without one.
func suggestion(route string) string {
	who := `tokens("tenants:admin")`
	if strings.Contains(route, " /console") {
		who = "members(tenants.OrganizationRead)"
	}
	line := fmt.Sprintf("{route: %q, who: %s", route, who)
	if strings.HasPrefix(route, "POST") || strings.HasPrefix(route, "PATCH") {
		line += ", body: `…`, want: 200"
	}
	return line + "},"
}

// All callers reach what is theirs and nothing else. A refusal changes
// nothing, a success shows nothing of another tenant.
func testMatrix(t *testing.T, w *world) {
	a, b := w.tenant(t, "Acorn"), w.tenant(t, "Birch")
	all := w.principals(t, a, b)
	w.refuses(t, a, b, all)
	if t.Failed() {
		return // one side suffices
	}
	for _, p := range policies {
		t.Run(p.route, func(t *testing.T) {
			t.Parallel()
			w.serves(t, p, a, b, all)
		})
	}
	t.Logf("%d policies, %d kinds of callers", len(policies), len(all))
}

// concurrency is the number of routes tested at once: a caller with an
// unknown session waits for it to arrive.
const concurrency = 16

// refuses checks callers without access: each is refused in the way of
// its kind of route, without effect.
func (w *world) refuses(t *testing.T, a, b *tenant, all []principal) {
	t.Helper()
	requests := make([]request, len(policies))
	for i, p := range policies {
		requests[i] = p.request(t, a)
	}
	before := map[*tenant]int{a: w.events(t, a.things["organization"]), b: w.events(t, b.things["organization"])}
	slots := make(chan struct{}, concurrency)
	var asked sync.WaitGroup
	for i, p := range policies {
		slots <- struct{}{}
		asked.Go(func() {
			w.refusesAll(t, p, a, all, requests[i])
			<-slots
		})
	}
	asked.Wait()
	for of, count := range before {
		if added := w.history(t, of.things["organization"])[count:]; len(added) > 0 {
			t.Errorf("refusals changed something of %s: %q", of.name, added)
		}
	}
}

// refusesAll checks all callers that one route refuses.
func (w *world) refusesAll(t *testing.T, p policy, a *tenant, all []principal, r request) {
	var asked sync.WaitGroup
	for _, caller := range all {
		if want := p.expects(caller, a); want != p.success() {
			asked.Go(func() { w.refusesOne(t, a, caller, r, want) })
		}
	}
	asked.Wait()
}

// refusesOne checks one caller without access.
func (w *world) refusesOne(t *testing.T, a *tenant, caller principal, r request, want int) {
	got := w.send(t, caller.sends(r))
	if got.status != want {
		t.Errorf("%s %s as %s: got %d %s, want %d", r.method, r.path, caller.name, got.status, got.brief(), want)
	}
	if want == http.StatusSeeOther && got.header.Get("Location") != "/console/sign-in" {
		t.Errorf("%s %s as %s: sent to %q", r.method, r.path, caller.name, got.header.Get("Location"))
	}
	if shown := a.shownBy(got.text, r); want != http.StatusNotFound && shown != "" {
		t.Errorf("%s %s as %s: the refusal shows %q of %s: %s", r.method, r.path, caller.name, shown, a.name, got.brief())
	}
}

// serves checks the callers with access, each on its own things.
func (w *world) serves(t *testing.T, p policy, a, b *tenant, all []principal) {
	t.Helper()
	for _, caller := range all {
		if p.expects(caller, a) != p.success() {
			continue
		}
		if p.ends && caller.session != nil {
			caller.cookies = w.memberOf(t, caller.session.of, caller.session.role).cookies
		}
		r := p.request(t, a)
		got := w.send(t, caller.sends(r))
		elsewhere := p.who.loose && caller.session != nil && got.status == http.StatusSeeOther
		if got.status != p.success() && !elsewhere {
			t.Errorf("%s as %s: got %d %s, want %d", r.path, caller.name, got.status, got.brief(), p.success())
		}
		as, _ := p.who.passes(caller)
		if shown := a.shownBy(got.text, r); as == b && shown != "" {
			t.Errorf("%s as %s: shows %q of %s: %s", r.path, caller.name, shown, a.name, got.brief())
		}
		if shown := b.shownBy(got.text, r); as == a && shown != "" {
			t.Errorf("%s as %s: shows %q of %s: %s", r.path, caller.name, shown, b.name, got.brief())
		}
	}
}

// A foreign id and an unknown one are answered alike, to the byte, in
// body and headers; also where only one of several ids is foreign.
func testForeignLooksUnknown(t *testing.T, w *world) {
	a, b := w.tenant(t, "Acorn"), w.tenant(t, "Birch")
	callers := []principal{
		{name: "an API key of B", header: asKey(b.key), key: b}, w.tokenHolder(t, b, "a token of B with all scopes", scopes...), w.memberOf(t, b, "owner"),
	}
	for _, p := range policies {
		for _, caller := range callers {
			if as, refusal := p.who.passes(caller); refusal != 0 || as != b || !p.isForeignTo(b, a) {
				continue
			}
			for _, foreign := range p.names() {
				w.alike(t, p, caller, a, b, foreign)
			}
		}
	}
}

// alike sends a request that names one thing of A and otherwise things
// of B, and the same with an unknown id.
func (w *world) alike(t *testing.T, p policy, caller principal, a, b *tenant, foreign string) {
	t.Helper()
	theirs := a.fill(t, "{"+foreign+"}")[0]
	send := func(id string) answer {
		mixed := &tenant{world: w, name: b.name, key: b.key, things: maps.Clone(b.things)}
		mixed.things[foreign] = id
		return w.send(t, caller.sends(p.request(t, mixed)))
	}
	hidden, absent := send(theirs), send(stranger(theirs))
	if hidden.status != http.StatusNotFound {
		t.Errorf("%s as %s, with a foreign {%s}: got %d %s, want 404", p.route, caller.name, foreign, hidden.status, hidden.brief())
	}
	if x, y := hidden.without(theirs), absent.without(stranger(theirs)); x != y {
		t.Errorf("%s as %s: a foreign {%s} is answered\n%s\nan unknown one\n%s", p.route, caller.name, foreign, x, y)
	}
}

// requestID differs between any two answers.
var requestID = regexp.MustCompile(`req_[0-9a-f]+`)

// counted are the headers with the number of requests left: they differ
// between answers to any request.
var counted = []string{"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit"}

// without returns an answer without the requested id, the request's id
// and the number of requests left.
func (a answer) without(id string) string {
	var all strings.Builder
	fmt.Fprintln(&all, a.status)
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if !slices.Contains(counted, name) {
			fmt.Fprintln(&all, name, a.header[name])
		}
	}
	all.WriteString(a.text)
	return requestID.ReplaceAllString(strings.ReplaceAll(all.String(), id, "ID"), "REQUEST")
}

// request is the test's use of a policy's route, with things of a tenant.
func (p policy) request(t *testing.T, of *tenant) request {
	t.Helper()
	method, path, _ := strings.Cut(p.route, " ")
	if p.path != "" {
		path = p.path
	}
	filled := of.fill(t, path, p.body)
	return request{method: method, path: filled[0], body: filled[1]}
}

// sends returns a request as the caller sends it. A browser reports the origin.
func (caller principal) sends(r request) request {
	r.header, r.cookies = maps.Clone(caller.header), caller.cookies
	if r.header == nil {
		r.header = map[string]string{}
	}
	if strings.HasPrefix(r.path, "/console") {
		r.header["Sec-Fetch-Site"] = "same-origin"
	}
	return r
}

func (p policy) success() int {
	if p.want == 0 {
		return http.StatusOK
	}
	return p.want
}

// names returns the things that a policy names, except those without an owner.
func (p policy) names() (names []string) {
	path := p.path
	if path == "" {
		path = p.route
	}
	for _, match := range named.FindAllStringSubmatch(path+" "+p.body, -1) {
		if match[1] != "new-email" && !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

// isForeignTo reports whether the things that a policy names are
// foreign to a tenant if they are the owner's.
func (p policy) isForeignTo(who, owner *tenant) bool {
	return who != nil && who != owner && len(p.names()) > 0
}

// expects returns the expected answer for a caller that uses the route
// with a tenant's things.
func (p policy) expects(caller principal, of *tenant) int {
	as, refusal := p.who.passes(caller)
	switch {
	case refusal != 0:
		return refusal
	case p.isForeignTo(as, of):
		return http.StatusNotFound
	}
	return p.success()
}

// shownBy returns the first thing of a tenant that a text shows though
// the request did not name it; "" if there is none.
func (of *tenant) shownBy(text string, r request) string {
	for _, thing := range append(slices.Sorted(maps.Values(of.things)), of.name, of.key) {
		if thing != "" && strings.Contains(text, thing) && !strings.Contains(r.path+r.body, thing) {
			return thing
		}
	}
	return ""
}

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
	testenv.Eventually(t, func() error {
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
	testenv.Eventually(t, func() error {
		return w.statusIs(t, request{method: "GET", path: "/console/logs", cookies: []*http.Cookie{cookie}}, 303)
	})
	return cookie.Value
}

// refused waits until every module that accepts API keys refuses one
// with a code.
func (w *world) refused(t *testing.T, code string, header map[string]string) {
	t.Helper()
	for _, path := range []string{"/v1/logs", "/v1/projects/none/error-groups"} {
		testenv.Eventually(t, func() error {
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
