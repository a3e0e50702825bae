package identity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// guarded is a router with a route for each kind of credential, at a
// fixed time that tests set.
type guarded struct {
	*chi.Mux
	credentials *identity.Credentials
	now         time.Time
	starting    error
	used        []string // key and outcome of each request
	served      int
}

func newGuarded(t *testing.T, limits identity.Limits) *guarded {
	t.Helper()
	g := &guarded{credentials: known(t), now: now}
	apply(t, g.credentials, secret("weirses_", "1"), session(contract.CredentialActive))
	guard := identity.NewGuard(identity.GuardConfig{
		Credentials: g.credentials, Ready: func() error { return g.starting }, Limits: limits, Clock: func() time.Time { return g.now },
		Used: func(_ *http.Request, who identity.Principal, use identity.Use) {
			g.used = append(g.used, fmt.Sprint(who.ID, " ", use))
		},
	})
	g.Mux = httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	serve := func(w http.ResponseWriter, _ *http.Request) { g.served++; w.WriteHeader(http.StatusNoContent) }
	page := func(w http.ResponseWriter, r *http.Request, err error) {
		httpapi.Handle(func(http.ResponseWriter, *http.Request) error { return err })(w, r)
	}
	g.With(guard.RequireAPIKey()).Get("/key", serve)
	g.With(guard.RequireScope("billing:read"), guard.RequireScope("billing:read")).Get("/token", serve)
	g.With(guard.RequireSession(page), guard.RequireSession(page)).Get("/session", serve)
	g.With(guard.RequireReady(page)).Get("/open", serve)
	return g
}

func (g *guarded) get(path, digit string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	switch path {
	case "/key":
		request.Header.Set("X-Api-Key", secret("weir_", digit))
	case "/token":
		request.Header.Set("Authorization", "Bearer "+secret("weirsvc_", digit))
	case "/session":
		request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: secret("weirses_", digit)})
	}
	answer := httptest.NewRecorder()
	g.ServeHTTP(answer, request)
	return answer
}

func code(answer *httptest.ResponseRecorder) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(answer.Body.Bytes(), &problem)
	return problem.Code
}

// Until a process has the credentials it gives all the same answer: never
// that a credential is invalid, and only the public name of the missing part.
func TestStarting(t *testing.T) {
	g := newGuarded(t, identity.Limits{})
	g.starting = httpapi.Part("keys and projects", errors.New("weir.credentials.v1 is not read yet: dial tcp 10.1.2.3:9092"))
	for _, path := range []string{"/key", "/token", "/session", "/open"} {
		for _, digit := range []string{"a", "d", "1", "f"} {
			answer := g.get(path, digit)
			if answer.Code != http.StatusInternalServerError || code(answer) != "unavailable" || answer.Header().Get("Retry-After") == "" {
				t.Errorf("%s with %s: %d %s", path, digit, answer.Code, answer.Body)
			}
			if text := answer.Body.String(); !strings.Contains(text, "starting: keys and projects.") || strings.Contains(text, "weir.cred") || strings.Contains(text, "10.1.2.3") {
				t.Errorf("%s with %s: %s", path, digit, text)
			}
		}
	}
	if g.starting = nil; g.get("/key", "a").Code != http.StatusNoContent || g.served != 1 || len(g.used) != 1 {
		t.Errorf("once it is ready: served %d, used %v", g.served, g.used)
	}
}

// Every kind of credential is limited, sees that in every answer, and
// gets tokens back in time. A request that passes two guards counts once.
func TestReadsAreLimited(t *testing.T) {
	for path, digit := range map[string]string{"/key": "a", "/token": "d", "/session": "1"} {
		g := newGuarded(t, identity.Limits{ReadsPerMinute: 3})
		for left := 2; left >= 0; left-- {
			header := g.get(path, digit).Header()
			if header.Get("X-RateLimit-Limit") != "3" || header.Get("X-RateLimit-Remaining") != fmt.Sprint(left) || header.Get("X-RateLimit-Scope") != "organization" ||
				header.Get("X-RateLimit-Reset") != fmt.Sprint(now.Unix()+int64(3-left)*20) || header.Get("RateLimit") != fmt.Sprintf(`"organization";r=%d;t=%d`, left, (3-left)*20) ||
				!strings.HasPrefix(header.Get("RateLimit-Policy"), `"organization";q=3;w=60, `) {
				t.Errorf("%s: with %d left: %v", path, left, header)
			}
		}
		answer := g.get(path, digit)
		if answer.Code != http.StatusTooManyRequests || code(answer) != "rate_limited" || answer.Header().Get("Retry-After") != "20" ||
			answer.Header().Get("X-RateLimit-Remaining") != "0" || g.served != 3 {
			t.Errorf("%s: %d %v %s, served %d", path, answer.Code, answer.Header(), answer.Body, g.served)
		}
		g.now = g.now.Add(20 * time.Second)
		if got := g.get(path, digit).Code; got != http.StatusNoContent {
			t.Errorf("%s: 20 s later: %d", path, got)
		}
	}
}

// The limit is the organization's: its keys, tokens and sessions share it. A
// key with a lower limit has that, and an operator's token its own bucket.
func TestLimitIsTheOrganizations(t *testing.T) {
	g := newGuarded(t, identity.Limits{ReadsPerMinute: 6})
	apply(t, g.credentials, secret("weir_", "2"), contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1",
		State: contract.CredentialActive, RatePerMinute: 2})
	apply(t, g.credentials, secret("weirsvc_", "3"), contract.Credential{Kind: contract.CredentialServiceToken, ID: "svc_3", State: contract.CredentialActive,
		Scopes: []string{"billing:read"}})
	apply(t, g.credentials, secret("weir_", "4"), contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_4", Organization: "org_2", Project: "prj_4",
		State: contract.CredentialActive})
	for _, step := range []struct{ path, digit, scope, left string }{
		{"/key", "2", "key", "1"}, {"/key", "2", "key", "0"}, {"/key", "2", "key", "0"}, // the last one is refused and takes nothing
		{"/key", "a", "organization", "3"}, {"/token", "d", "organization", "2"}, {"/session", "1", "organization", "1"}, {"/key", "a", "organization", "0"},
		{"/token", "3", "key", "5"}, {"/key", "4", "organization", "5"},
	} {
		header := g.get(step.path, step.digit).Header()
		if header.Get("X-RateLimit-Scope") != step.scope || header.Get("X-RateLimit-Remaining") != step.left {
			t.Errorf("%s with %s: %s left of %s, want %s of %s", step.path, step.digit, header.Get("X-RateLimit-Remaining"), header.Get("X-RateLimit-Scope"), step.left, step.scope)
		}
	}
}

// A network that guesses credentials is stopped; a valid one from there
// still passes, and invented sessions are no longer waited for.
func TestAnonymousIsLimited(t *testing.T) {
	for path, digit := range map[string]string{"/key": "a", "/token": "d"} {
		g := newGuarded(t, identity.Limits{AnonymousPerMinute: 2})
		var codes []string
		for range 4 {
			answer := g.get(path, "f")
			codes = append(codes, code(answer))
			if limited := answer.Header().Get("Retry-After") != ""; limited != (answer.Code == http.StatusTooManyRequests) {
				t.Errorf("%s: %d with Retry-After %q", path, answer.Code, answer.Header().Get("Retry-After"))
			}
		}
		if slices.Contains(codes[:2], "rate_limited") || codes[2] != "rate_limited" || codes[3] != "rate_limited" {
			t.Errorf("%s: answered %q", path, codes)
		}
		if got := g.get(path, digit).Code; got != http.StatusNoContent {
			t.Errorf("%s: a valid credential from there: %d", path, got)
		}
	}
	g := newGuarded(t, identity.Limits{AnonymousPerMinute: 1})
	for i, want := range []int{http.StatusSeeOther, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		if got := g.get("/session", "f").Code; got != want {
			t.Errorf("made-up session %d: %d, want %d", i+1, got, want)
		}
	}
	if got := g.get("/session", "1").Code; got != http.StatusNoContent {
		t.Errorf("a valid session from there: %d", got)
	}
}

// Uses of API keys are reported, also of an ended key; of
// other credentials none.
func TestUsesAreReported(t *testing.T) {
	g := newGuarded(t, identity.Limits{ReadsPerMinute: 3})
	for _, step := range [][2]string{{"/key", "a"}, {"/key", "b"}, {"/key", "c"}, {"/key", "f"}, {"/token", "d"}, {"/session", "1"}, {"/key", "a"}} {
		g.get(step[0], step[1])
	}
	want := []string{fmt.Sprint("key_1 ", identity.Admitted), fmt.Sprint("key_1 ", identity.Ended), fmt.Sprint("key_1 ", identity.Ended), fmt.Sprint("key_1 ", identity.Refused)}
	if !slices.Equal(g.used, want) {
		t.Errorf("told %q, want %q", g.used, want)
	}
}

// A write-only key is refused on reading routes, with the reason; it
// counts as any other.
func TestKeysThatOnlyWrite(t *testing.T) {
	g := newGuarded(t, identity.Limits{})
	key := contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive}
	for access, want := range map[string]int{"": 204, contract.AccessFull: 204, contract.AccessProject: 204, contract.AccessWrite: 403, "of a newer version": 403} {
		key.Access, key.Version = access, key.Version+1
		apply(t, g.credentials, secret("weir_", "2"), key)
		got := g.get("/key", "2")
		if got.Code != want || got.Header().Get("X-RateLimit-Remaining") == "" || want == 403 && code(got) != "forbidden" {
			t.Errorf("access %q: %d %v %s", access, got.Code, got.Header(), got.Body)
		}
	}
}

// An answer that lasts learns that its credential has ended, or gives less.
func TestHolds(t *testing.T) {
	g := newGuarded(t, identity.Limits{})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: g.credentials, Clock: func() time.Time { return now }})
	key, cookie := secret("weir_", "7"), secret("weirses_", "1")
	request := func(who identity.Principal) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Api-Key", key)
		r.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: cookie})
		return r.WithContext(identity.NewContext(r.Context(), who))
	}
	asKey := request(identity.Principal{Kind: contract.CredentialAPIKey, Project: "prj_1"})
	asMember := request(identity.Principal{Kind: contract.CredentialSession, Scopes: session(contract.CredentialActive).Scopes})
	holds := func(what string, r *http.Request, want bool) {
		t.Helper()
		if guard.Holds(r) != want {
			t.Errorf("%s: holds %t", what, !want)
		}
	}
	credential := contract.Credential{Kind: contract.CredentialAPIKey, Project: "prj_1", State: contract.CredentialActive, Version: 1}
	holds("an unknown key", asKey, false)
	apply(t, g.credentials, key, credential)
	holds("a key", asKey, true)
	credential.Version, credential.Access = 2, contract.AccessProject
	apply(t, g.credentials, key, credential)
	holds("a key that reads less", asKey, false)
	holds("a session", asMember, true)
	ended := session(contract.CredentialRevoked)
	ended.Version++
	apply(t, g.credentials, cookie, ended)
	holds("a session that has ended", asMember, false)
}
