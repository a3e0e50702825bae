package ui_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

// A role sees only the sections that it may read, in the navigation and
// by address. A refusal names whom to ask.
func TestSectionsByRole(t *testing.T) {
	for role, open := range map[string]map[ui.Section]bool{
		"owner":   {ui.Logs: true, ui.Errors: true, ui.Usage: true, ui.Settings: true},
		"viewer":  {ui.Logs: true, ui.Errors: true, ui.Usage: true, ui.Settings: true},
		"billing": {ui.Usage: true, ui.Settings: true},
		"auditor": {ui.Settings: true}, // of a newer version: this one does not know its rights
	} {
		for _, section := range []ui.Section{ui.Logs, ui.Errors, ui.Usage, ui.Settings} {
			answer := visit(t, section, role)
			body := answer.Body.String()
			if open[section] != (answer.Code == http.StatusOK) {
				t.Errorf("%s as %s: %d", section, role, answer.Code)
			}
			if answer.Code == http.StatusForbidden && !strings.Contains(body, "Your role here is "+role+", which may not ") {
				t.Errorf("%s as %s: %s", section, role, body)
			}
			for path, linked := range map[string]bool{"/console/logs": open[ui.Logs], "/console/errors": open[ui.Errors], "/console/usage": open[ui.Usage]} {
				if strings.Contains(body, `href="`+path+`"`) != linked {
					t.Errorf("%s as %s: the navigation leads to %s: %t", section, role, path, !linked)
				}
			}
		}
	}
	if got := visit(t, ui.Logs, "billing").Body.String(); !strings.Contains(got, "Ask one of the owners, admins, developers or viewers.") {
		t.Errorf("nobody says whom to ask: %s", got)
	}
}

// Every role starts on a page that it may see.
func TestHome(t *testing.T) {
	for role, want := range map[string]string{"owner": "/console/logs", "billing": "/console/usage", "auditor": "/console/settings"} {
		if got := ui.Home(identity.Principal{Scopes: []string{identity.RoleScope(role)}}); got != want {
			t.Errorf("home of role %s is %s, want %s", role, got, want)
		}
	}
}

// visit opens a page of a section as a member with a role.
func visit(t *testing.T, section ui.Section, role string) *httptest.ResponseRecorder {
	t.Helper()
	credentials, secret := identity.NewCredentials(time.Now), identity.SessionPrefix+strings.Repeat("a", 48)
	encoded, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, Organization: "org_1", Member: "mem_1",
		Scopes: []string{identity.RoleScope(role)}, State: contract.CredentialActive})
	if err := credentials.Apply(contract.CredentialKey(secret), encoded); err != nil {
		t.Fatal(err)
	}
	pages := ui.NewPages(section, formPage)
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	pages.Mount(router, identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now}), func(signedIn chi.Router) {
		signedIn.Get("/console/page", pages.Handle(func(w http.ResponseWriter, r *http.Request) error {
			pages.Write(w, r, http.StatusOK, "form", hostileView())
			return nil
		}))
	})
	request := httptest.NewRequest(http.MethodGet, "/console/page", nil)
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: secret})
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, request)
	return answer
}
