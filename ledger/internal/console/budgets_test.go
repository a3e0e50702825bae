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
		if err := credentials.Apply(contract.CredentialKey(sessionOf(role)), issued); err != nil {
			t.Fatal(err)
		}
	}
	for project, organization := range map[string]string{"project": "acme", "foreign": "evil"} {
		created, _ := json.Marshal(contract.ProjectCreated{Organization: organization, Project: project, Name: "Shop of " + organization})
		if err := projects.Apply(contract.TypeProjectCreated, created); err != nil {
			t.Fatal(err)
		}
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
	ask("billing", "", nil, http.StatusOK, "being opened")
	l.Start(t, "acme", ledger.Scale)
	l.Book(t, l.NewCharge("acme", 900))
	ask("billing", "", nil, http.StatusOK, "There are no budgets", "Set a budget", "the project Shop of acme")
	ask("viewer", "", nil, http.StatusOK, "There are no budgets", "Budgets are set by owners, admins, billings")
	ask("billing", "", url.Values{"project": {"project"}, "size": {"1"}, "unit": {"KiB"}}, http.StatusSeeOther)
	ask("billing", "", url.Values{"key": {" key "}, "size": {"900"}, "unit": {"B"}}, http.StatusSeeOther)
	ask("viewer", "", nil, http.StatusOK, "<bdi>Shop of acme</bdi>", "900 B (87%)", `<rect class="used high" width="878"`, "almost used up", "<bdi>key</bdi>", "exhausted")
	ask("billing", "", nil, http.StatusOK, `aria-label="Remove the budget of the API key key"`)
	for fault, form := range map[string]url.Values{
		"Name either project or key":                       {"size": {"1"}, "unit": {"GiB"}},
		"is no budget. Use a number above zero, such as 1": {"key": {"k"}, "size": {"NaN"}, "unit": {"GiB"}},
		"&#34;-1&#34; KiB is no budget":                    {"key": {"k"}, "size": {"-1"}, "unit": {"KiB"}},
		"is not an id":                                     {"key": {"a b"}, "size": {"1"}, "unit": {"MiB"}},
	} {
		ask("billing", "", form, http.StatusUnprocessableEntity, fault, `aria-invalid="true"`)
	}
	ask("billing", "", url.Values{"project": {"foreign"}, "size": {"1"}, "unit": {"GiB"}}, http.StatusNotFound)
	ask("billing", "/remove", url.Values{"project": {"foreign"}}, http.StatusNotFound)
	ask("viewer", "", url.Values{"key": {"k"}, "size": {"1"}, "unit": {"GiB"}}, http.StatusForbidden, "owners, admins, billings")
	ask("viewer", "/remove", url.Values{"key": {"key"}}, http.StatusForbidden)
	ask("billing", "/remove", url.Values{"key": {"key"}}, http.StatusSeeOther)
	if found, err := l.Budgets.List(t.Context(), "acme"); err != nil || len(found.Budgets) != 1 || found.Budgets[0].Bytes != 1024 {
		t.Errorf("left are %+v, %v", found, err)
	}
}

// sessionOf returns the session of a member with a role.
func sessionOf(role string) string {
	return identity.SessionPrefix + strings.Repeat(map[string]string{"billing": "b", "viewer": "c"}[role], 48)
}
