package http_test

import (
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/console"
	"github.com/weirlog/weir/ledger/internal/http"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

var token = identity.ServiceTokenPrefix + strings.Repeat("a", 48)

// An api is the routes on a ledger, with a service token of acme that
// may read and decide.
type api struct {
	*ledgertest.Ledger
	handler nethttp.Handler
	routes  chi.Routes
}

func newAPI(t *testing.T) *api {
	t.Helper()
	return newAPIFor(t, map[string]string{token: "acme"})
}

// newAPIFor is newAPI with these tokens by organization; "" is the installation.
func newAPIFor(t *testing.T, tokens map[string]string) *api {
	t.Helper()
	credentials := identity.NewCredentials(time.Now)
	for secret, organization := range tokens {
		issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialServiceToken, ID: "tok_" + secret[len(secret)-1:], Organization: organization,
			Scopes: []string{http.ScopeRead, http.ScopeWrite}, State: contract.CredentialActive, Version: 1})
		testenv.Must(t, credentials.Apply(contract.CredentialKey(secret), issued))
	}
	a := &api{Ledger: ledgertest.New(t)}
	projects := projectsOf(t)
	a.Budgets.Owns = projects.Owns
	a.TestClocks.Owns, a.Forecasts.Owns = a.Budgets.Owns, a.Budgets.Owns
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	(&http.API{Services: a.Services, Guard: guard, StatementPage: console.StatementPage(projects)}).Mount(router)
	a.routes, a.handler = router, routetest.Handler(router)
	return a
}

// projectsOf returns one project of acme and one of evil.
func projectsOf(t *testing.T) *identity.Directory {
	t.Helper()
	projects := identity.NewDirectory()
	for project, organization := range map[string]string{"project": "acme", "foreign": "evil"} {
		created, _ := json.Marshal(contract.ProjectCreated{Organization: organization, Project: project, Name: project})
		testenv.Must(t, projects.Apply(contract.TypeProjectCreated, created))
	}
	return projects
}

// get returns the status and the body's members.
func (a *api) get(t *testing.T, path string) (int, map[string]any) {
	t.Helper()
	return a.send(t, nethttp.MethodGet, path, "")
}

// send is get for another method, with a body.
func (a *api) send(t *testing.T, method, path, body string) (int, map[string]any) {
	t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, members := httptest.NewRecorder(), map[string]any{}
	a.handler.ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), &members); err != nil {
		t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	return answer.Code, members
}

// Pages of entries continue by cursor, the latest first, and end.
func TestEntries(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 1), a.NewCharge("acme", 2), a.NewCharge("acme", 3))
	var amounts []float64
	for path := "/v1/organizations/acme/entries?limit=2"; path != ""; {
		status, page := a.get(t, path)
		if status != 200 {
			t.Fatalf("%d %v", status, page)
		}
		for _, item := range page["items"].([]any) {
			if entry := item.(map[string]any); entry["reason"] == "charged" {
				amounts = append(amounts, entry["amount"].(float64))
			}
		}
		cursor, more := page["next_cursor"].(string)
		if path = ""; more {
			path = "/v1/organizations/acme/entries?limit=2&cursor=" + cursor
		}
	}
	if len(amounts) != 3 || amounts[0] != 3 || amounts[2] != 1 {
		t.Errorf("charges %v", amounts)
	}
}

// Usage is by day and project, or of one project.
func TestUsage(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 1), a.NewCharge("acme", 2))
	for query, want := range map[string]int{"": 1, "?project=project": 1, "?project=other": 0} {
		status, page := a.get(t, "/v1/organizations/acme/usage"+query)
		if items := page["items"].([]any); status != 200 || len(items) != want || want == 1 && items[0].(map[string]any)["bytes"] != 3.0 {
			t.Errorf("%q: %d %v", query, status, page)
		}
	}
}

// Another's organization and an impossible one look missing. Invalid
// parameters are refused.
func TestRefusals(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Start(t, "evil", ledger.Indie)
	for path, want := range map[string]int{
		"evil/balance": 404, "evil/entries": 404, "evil/usage": 404, "nobody/balance": 404, "%00/balance": 404, "*/balance": 404,
		"acme/balance?at=yesterday": 400, "acme/entries?cursor=x": 400, "acme/usage?level=error": 400, "acme/balance?at=2020-01-01T00:00:00Z": 404,
	} {
		if status, body := a.get(t, "/v1/organizations/"+path); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, body, want)
		}
	}
}

// A number that is not whole or out of bounds is refused everywhere:
// none is rounded, truncated or misread.
func TestNumbersAreWholeAndBounded(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	before := a.must(t, 200, "GET", "subscription", "")
	requests := []string{
		`POST grants {"amount":%s}`, `POST grants {"amount":9,"priority":%s}`, `POST grants {"amount":9,"rollover_cap":%s}`, `POST adjustments {"amount":%s}`,
		`PUT subscription {"tier":"scale","quota":%s}`, `PUT subscription {"tier":"scale","requests_per_minute":%s}`,
		`PUT subscription {"tier":"scale","on_exhausted":"overage","overage_cap":%s}`, `PUT subscription {"tier":"scale","anchor_day":%s}`,
		`PUT budgets [{"project":"project","bytes":%s}]`, `PUT thresholds {"percents":[%s]}`, `POST dry-run {"bytes":%s}`, `POST simulation {"tier":"scale","quota":%s}`,
	}
	for _, number := range []string{
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "72057594037927937", "1.0", "1e1", "01", "0x1", "NaN", `"1"`, "true", "[1]",
	} {
		for _, request := range requests {
			parts := strings.SplitN(fmt.Sprintf(request, number), " ", 3)
			a.must(t, 400, parts[0], parts[1], parts[2])
		}
	}
	for path, list := range map[string]string{"grants": "items", "budgets": "items", "entries?reason=adjusted": "items"} {
		if found := a.must(t, 200, "GET", path, ""); len(found[list].([]any)) > 0 {
			t.Errorf("%s: %v", path, found)
		}
	}
	if now := a.must(t, 200, "GET", "subscription", ""); !reflect.DeepEqual(now, before) {
		t.Errorf("subscribed to %v, before to %v", now, before)
	}
}
