package isolation

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// open are the routes without authentication that always
// answer everybody alike.
var open = []string{"GET /", "GET /healthz", "GET /readyz", "GET /v1/openapi.json", "GET /console/assets/{version}/{name}"}

// Every authenticated route limits its callers and sends the limit,
// also to callers without the scope or permission.
func testEveryAuthenticatedRouteIsLimited(t *testing.T, w *world) {
	a := w.tenant(t, "Acorn")
	key := principal{name: "an API key", header: asKey(a.key), key: a}
	write := w.keyHolder(t, a, "write")
	strong, weak := w.tokenHolder(t, a, "a token with all scopes", scopes...), w.tokenHolder(t, a, "a token with another scope", "x:y")
	owner, billing := w.memberOf(t, a, "owner"), w.memberOf(t, a, "billing")
	limited := 0
	for _, p := range policies {
		callers := []principal{owner, billing}
		switch {
		case p.who.loose || p.who.line == everybody.line:
			continue
		case slices.Contains([]string{keys.line, readers.line, wideReaders.line}, p.who.line):
			callers = []principal{key, write}
		case !strings.Contains(p.route, " /console"):
			callers = []principal{strong, weak}
		}
		limited++
		for _, caller := range callers {
			if p.ends && caller.session != nil {
				caller = w.memberOf(t, a, caller.session.role)
			}
			got := w.send(t, caller.sends(p.request(t, a)))
			for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Scope", "RateLimit-Policy", "RateLimit"} {
				if got.header.Get(name) == "" {
					t.Errorf("%s as %s: %d without %s", p.route, caller.name, got.status, name)
				}
			}
		}
	}
	t.Logf("%d policies of authenticated routes", limited)
}

// Every module refuses callers that read or administer without pause, with
// a time to wait, for every kind of credential; other callers are served.
func TestReadsAreLimitedByOrganization(t *testing.T) {
	const perMinute = 30
	w := newWorldOn(t, postgrestest.URL(t), func(set *allinone.Modules) {
		set.Ingest.Limits.ReadsPerMinute, set.Ledger.Limits.ReadsPerMinute, set.Grouping.Limits.ReadsPerMinute = perMinute, perMinute, perMinute
	})
	a, b := w.tenant(t, "Acorn"), w.tenant(t, "Birch")
	reads := func(of *tenant, as principal) map[string]principal {
		key, token := principal{header: asKey(of.key)}, w.tokenHolder(t, of, "a token", "billing:read")
		return map[string]principal{
			"/v1/logs": key, "/v1/error-groups/" + of.things["group"]: key, "/v1/organizations/" + of.things["organization"] + "/balance": token,
			"/console/logs": as, "/console/errors": as, "/console/usage": as,
		}
	}
	quiet := reads(b, w.memberOf(t, b, "owner"))
	for path, caller := range reads(a, w.memberOf(t, a, "owner")) {
		got := answer{}
		for range 2 * perMinute {
			if got = w.send(t, caller.sends(request{method: "GET", path: path})); got.status == http.StatusTooManyRequests {
				break
			}
		}
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" || got.header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("GET %s without pause: %d %v", path, got.status, got.header)
		}
		if !strings.HasPrefix(path, "/console") && got.get("code") != "rate_limited" {
			t.Errorf("GET %s without pause: %s", path, got.text)
		}
	}
	for path, caller := range quiet {
		if got := w.send(t, caller.sends(request{method: "GET", path: path})); got.status != http.StatusOK {
			t.Errorf("GET %s of the other organization: %d %s", path, got.status, got.brief())
		}
	}
}

// Until a module has the credentials it answers on every route that it
// is starting: it calls no valid key invalid, and sends no signed-in
// member to the sign-in.
func TestStartingUntilCredentialsAreKnown(t *testing.T) {
	w := builtWorld(t, kafkatest.Brokers(t), postgrestest.URL(t), func(*allinone.Modules) {})
	digits := strings.Repeat("a", 48)
	callers := []principal{
		{name: "nobody"}, {name: "an API key", header: asKey("weir_" + digits)}, {name: "the operator", header: asToken(operatorToken)},
		{name: "a session", cookies: asSession("weirses_" + digits)},
	}
	for _, p := range policies {
		if slices.Contains(open, p.route) {
			continue
		}
		method, path, _ := strings.Cut(p.route, " ")
		path = regexp.MustCompile(`\{[a-z-]+\}|\*`).ReplaceAllString(path, "x")
		for _, caller := range callers {
			got := w.send(t, caller.sends(request{method: method, path: path, body: p.body}))
			if got.status != http.StatusInternalServerError || got.header.Get("Retry-After") == "" || got.header.Get("Location") != "" {
				t.Errorf("%s as %s: %d %v %s", p.route, caller.name, got.status, got.header, got.brief())
			}
			if asked := method == http.MethodGet && strings.HasPrefix(path, "/console"); asked != (got.header.Get("Refresh") != "") {
				t.Errorf("%s as %s: Refresh is %q", p.route, caller.name, got.header.Get("Refresh"))
			}
			if console := strings.HasPrefix(path, "/console"); !console && got.get("code") != "unavailable" || console && !strings.Contains(got.text, "starting") {
				t.Errorf("%s as %s: %s", p.route, caller.name, got.brief())
			}
			if inside := regexp.MustCompile(`weir\.[a-z]+\.v1|127\.0\.0\.1`).FindString(got.text); inside != "" {
				t.Errorf("%s as %s shows %s: %s", p.route, caller.name, inside, got.brief())
			}
		}
	}
}
