package identity_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

func session(state string) contract.Credential {
	return contract.Credential{Kind: contract.CredentialSession, ID: "ses_1", Organization: "org_1", Member: "mem_1",
		Scopes: []string{"role:viewer"}, State: state, Version: 1}
}

func apply(t *testing.T, credentials *identity.Credentials, secret string, credential contract.Credential) {
	t.Helper()
	value, err := json.Marshal(credential)
	testenv.Must(t, err)
	testenv.Must(t, credentials.Apply(contract.CredentialKey(secret), value))
}

// refused fails the test: requests may only be redirected to the sign-in.
func refused(t *testing.T) func(http.ResponseWriter, *http.Request, error) {
	return func(_ http.ResponseWriter, r *http.Request, err error) { t.Errorf("%s %s: %v", r.Method, r.URL, err) }
}

// withCookie sends a request with the session's cookie through
// RequireSession: 200 means that it passed.
func withCookie(t *testing.T, credentials *identity.Credentials, secret string) *httptest.ResponseRecorder {
	t.Helper()
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.With(guard(credentials).RequireSession(refused(t))).Get("/console/logs", func(_ http.ResponseWriter, r *http.Request) {
		got := identity.FromContext(r.Context())
		if got.Organization != "org_1" || got.Member != "mem_1" || got.Role() != "viewer" {
			t.Errorf("principal = %+v", got)
		}
	})
	request := httptest.NewRequest(http.MethodGet, "/console/logs", nil)
	if secret != "" {
		request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: secret})
	}
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, request)
	return answer
}

// A request without a valid session is sent to sign in, whatever other
// credential it has.
func TestRequireSession(t *testing.T) {
	credentials := known(t)
	apply(t, credentials, secret("weirses_", "1"), session(contract.CredentialActive))
	apply(t, credentials, secret("weirses_", "2"), session(contract.CredentialRevoked))
	expired := session(contract.CredentialActive)
	expired.ExpiresAt = &now
	apply(t, credentials, secret("weirses_", "3"), expired)
	for name, c := range map[string]struct {
		secret string
		want   int
	}{
		"active":                       {secret("weirses_", "1"), http.StatusOK},
		"none":                         {"", http.StatusSeeOther},
		"signed out":                   {secret("weirses_", "2"), http.StatusSeeOther},
		"expired at this very moment":  {secret("weirses_", "3"), http.StatusSeeOther},
		"malformed":                    {"weirses_short", http.StatusSeeOther},
		"unknown":                      {secret("weirses_", "4"), http.StatusSeeOther},
		"an API key":                   {secret("weir_", "a"), http.StatusSeeOther},
		"a service token":              {secret("weirsvc_", "d"), http.StatusSeeOther},
		"the hash instead of a secret": {contract.CredentialKey(secret("weirses_", "1")), http.StatusSeeOther},
	} {
		answer := withCookie(t, credentials, c.secret)
		if answer.Code != c.want {
			t.Errorf("%s: status = %d, want %d", name, answer.Code, c.want)
		}
		if c.want == http.StatusSeeOther && answer.Header().Get("Location") != "/console/sign-in" {
			t.Errorf("%s: Location = %q", name, answer.Header().Get("Location"))
		}
	}
}

// Long ended sessions are forgotten after a restart; an API key is
// kept, so that its holder gets the reason.
func TestPastSessionsAreForgotten(t *testing.T) {
	credentials := known(t)
	past := session(contract.CredentialActive)
	past.ExpiresAt = &now
	apply(t, credentials, secret("weirses_", "1"), past)
	if _, err := credentials.Lookup(secret("weirses_", "1")); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("a past session: %v", err)
	}
	if _, err := credentials.Lookup(secret("weir_", "c")); !errors.Is(err, identity.ErrExpired) {
		t.Errorf("a past API key: %v", err)
	}
}

// A session opens only the console.
func TestSessionIsNoKeyAndNoToken(t *testing.T) {
	credentials := known(t)
	apply(t, credentials, secret("weirses_", "1"), session(contract.CredentialActive))
	if _, err := identity.APIKey(credentials, secret("weirses_", "1")); err == nil {
		t.Error("a session works as an API key")
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer "+secret("weirses_", "1"))
	check(t, guard(credentials).RequireScope("role:viewer"), request, "invalid_token", "Bearer")
}

// A session that arrives a moment after its holder is admitted.
func TestAwaitMeetsALateCredential(t *testing.T) {
	credentials := known(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	found := make(chan error, 1)
	go func() {
		_, err := credentials.Await(ctx, secret("weirses_", "1"))
		found <- err
	}()
	apply(t, credentials, secret("weirses_", "9"), session(contract.CredentialActive)) // another credential changes
	apply(t, credentials, secret("weirses_", "1"), session(contract.CredentialActive))
	if err := <-found; err != nil {
		t.Error(err)
	}
}

// A page with a session due for renewal redirects to the renewal and
// back; a form, a script and the renewal itself are not redirected.
// Without a session, the way back is through the sign-in.
func TestSessionsAreRenewed(t *testing.T) {
	credentials, past, future := known(t), now, now.Add(time.Second)
	due, fresh := session(contract.CredentialActive), session(contract.CredentialActive)
	due.RenewAt, fresh.RenewAt = &past, &future
	apply(t, credentials, secret("weirses_", "1"), due)
	apply(t, credentials, secret("weirses_", "2"), fresh)
	navigate, script := [2]string{"Sec-Fetch-Mode", "navigate"}, [2]string{"Sec-Fetch-Mode", "cors"}
	for name, c := range map[string]struct {
		secret, method, path string
		header               [2]string
		location             string
	}{
		"due":                      {"1", "GET", "/console/logs?q=a+%26", navigate, "/console/session/renew?to=%2Fconsole%2Flogs%3Fq%3Da%2B%2526"},
		"due, an old browser":      {"1", "GET", "/console/logs", [2]string{"Accept", "text/html,*/*"}, "/console/session/renew?to=%2Fconsole%2Flogs"},
		"due, a script":            {"1", "GET", "/console/logs", script, ""},
		"due, a script of no kind": {"1", "GET", "/console/logs", [2]string{"Accept", "*/*"}, ""},
		"due, a form":              {"1", "POST", "/console/logs", navigate, ""},
		"due, on its way":          {"1", "GET", "/console/session/renew", navigate, ""},
		"fresh":                    {"2", "GET", "/console/logs", navigate, ""},
		"none":                     {"3", "GET", "/console/logs", navigate, "/console/sign-in?to=%2Fconsole%2Flogs"},
		"none, a form":             {"3", "POST", "/console/logs", navigate, "/console/sign-in"},
	} {
		router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
		router.With(guard(credentials).RequireSession(refused(t))).HandleFunc("/*", func(http.ResponseWriter, *http.Request) {})
		request := httptest.NewRequest(c.method, c.path, nil)
		request.Header.Set(c.header[0], c.header[1])
		request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: secret("weirses_", c.secret)})
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, request)
		if got := answer.Header().Get("Location"); got != c.location {
			t.Errorf("%s: led to %q, want %q", name, got, c.location)
		}
	}
}

// Billing sees usage and no entries; an unknown role sees nothing.
func TestRoleReads(t *testing.T) {
	for role, want := range map[string]string{
		"owner": "logs:read errors:read usage:read", "admin": "logs:read errors:read usage:read",
		"developer": "logs:read errors:read usage:read", "viewer": "logs:read errors:read usage:read",
		"billing": "usage:read", "auditor": "", "": "",
	} {
		var reads []string
		for _, read := range identity.Reads() {
			if identity.RoleReads(role, read) {
				reads = append(reads, string(read))
			}
		}
		if got := strings.Join(reads, " "); got != want {
			t.Errorf("role %q reads %q, want %q", role, got, want)
		}
	}
	if got := strings.Join(identity.RolesThatRead(identity.ReadLogs), " "); got != "owner admin developer viewer" {
		t.Errorf("the logs are read by %q", got)
	}
}
