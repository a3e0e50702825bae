package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/console"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// Members with the right role set and remove budgets by forms, with
// errors beside their fields; others only read them.
func TestBudgetsPage(t *testing.T) {
	l := ledgertest.New(t)
	credentials, projects := identity.NewCredentials(time.Now), identity.NewDirectory()
	for _, role := range []string{"billing", "viewer"} {
		issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, ID: "ses_" + role, Organization: "acme", Member: "mem_" + role,
			Scopes: []string{identity.RoleScope(role)}, State: contract.CredentialActive, Version: 1})
		testenv.Must(t, credentials.Apply(contract.CredentialKey(sessionOf(role)), issued))
	}
	for project, organization := range map[string]string{"project": "acme", "foreign": "evil"} {
		created, _ := json.Marshal(contract.ProjectCreated{Organization: organization, Project: project, Name: "Shop of " + organization})
		testenv.Must(t, projects.Apply(contract.TypeProjectCreated, created))
	}
	for key, organization := range map[string]string{"key": "acme", "other": "evil"} {
		issued, _ := json.Marshal(contract.APIKeyIssued{Organization: organization, Project: "project", APIKey: key, Name: "pods", Environment: "prod"})
		testenv.Must(t, projects.Apply(contract.TypeAPIKeyIssued, issued))
	}
	l.Budgets.Owns = projects.Owns
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	console.Mount(router, console.Config{Services: l.Services, Directory: projects, Guard: guard})
	ask := func(role, path string, form url.Values, status int, texts ...string) {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, "/console/usage/budgets"+path, nil)
		if form != nil {
			request = httptest.NewRequest(http.MethodPost, "/console/usage/budgets"+path, strings.NewReader(form.Encode()))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: sessionOf(role)})
		answer := httptest.NewRecorder()
		routetest.Handler(router).ServeHTTP(answer, request)
		for _, text := range append(texts, "") {
			if answer.Code != status || !strings.Contains(answer.Body.String(), text) {
				t.Errorf("%s of %v as %s: %d, want %d and %q:\n%s", path, form, role, answer.Code, status, text, answer.Body)
			}
		}
	}
	ask("billing", "", nil, http.StatusOK, "being set up")
	l.Start(t, "acme", ledger.Scale)
	l.Book(t, l.NewCharge("acme", 900))
	ask("billing", "", nil, http.StatusOK, "There are no budgets", "Set a budget", "Project: Shop of acme", "API key: pods (Shop of acme, prod)")
	ask("viewer", "", nil, http.StatusOK, "There are no budgets", "ask one of the owners, admins and billing members")
	ask("billing", "", url.Values{"of": {"project:project"}, "size": {"1 KiB"}}, http.StatusSeeOther)
	ask("billing", "", url.Values{"of": {"key:key"}, "size": {"900"}}, http.StatusSeeOther)
	ask("viewer", "", nil, http.StatusOK, "<bdi>Shop of acme</bdi>", "900 B (87%)", `<rect class="used high" width="878"`, "almost used up", "<bdi>pods</bdi>", "exhausted")
	ask("billing", "?of=key:key", nil, http.StatusOK, `<option value="key:key" selected>`, `value="900 B"`)
	ask("billing", "", nil, http.StatusOK, `aria-label="Remove the budget of the API key pods"`)
	for fault, form := range map[string]url.Values{
		"Choose a project or an API key.":                   {"size": {"1 GiB"}},
		"is not a size. Use a number above zero and a unit": {"of": {"key:k"}, "size": {"NaN GiB"}},
		"&#34;-1 KiB&#34; is not a size":                    {"of": {"key:k"}, "size": {"-1 KiB"}},
		"is not an id":                                      {"of": {"key:a b"}, "size": {"1 MiB"}},
	} {
		ask("billing", "", form, http.StatusUnprocessableEntity, fault, `aria-invalid="true"`)
	}
	ask("billing", "", url.Values{"of": {"project:foreign"}, "size": {"1 GiB"}}, http.StatusNotFound)
	ask("billing", "/remove", url.Values{"of": {"project:foreign"}}, http.StatusNotFound)
	ask("viewer", "", url.Values{"of": {"key:k"}, "size": {"1 GiB"}}, http.StatusForbidden, "owners, admins or billing members")
	ask("viewer", "/remove", url.Values{"of": {"key:key"}}, http.StatusForbidden)
	ask("billing", "/remove", url.Values{"of": {"key:key"}}, http.StatusSeeOther)
	if found, err := l.Budgets.List(t.Context(), "acme"); err != nil || len(found.Budgets) != 1 || found.Budgets[0].Bytes != 1024 {
		t.Errorf("left are %+v, %v", found, err)
	}
}

// sessionOf returns the session of a member with a role.
func sessionOf(role string) string {
	return identity.SessionPrefix + strings.Repeat(map[string]string{"billing": "b", "viewer": "c"}[role], 48)
}
