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
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A visitor requests pages as members, each a session with an
// organization and role.
type visitor struct {
	t           *testing.T
	credentials *identity.Credentials
	router      http.Handler
}

func newVisitor(t *testing.T, l *ledgertest.Ledger, operators string) visitor {
	t.Helper()
	v := visitor{t: t, credentials: identity.NewCredentials(time.Now)}
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: v.credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	console.Mount(router, console.Config{Services: l.Services, Directory: identity.NewDirectory(), Guard: guard, Operators: operators})
	v.router = routetest.Handler(router)
	return v
}

// get requests a page as a member. A text with the prefix "no " must be absent.
func (v visitor) get(organization, role, path string, status int, texts ...string) (page string) {
	v.t.Helper()
	return v.send(organization, role, httptest.NewRequest(http.MethodGet, "/console/usage"+path, nil), status, texts...)
}

// post submits a form as a member and checks the response like get.
func (v visitor) post(organization, role, path string, form url.Values, status int, texts ...string) (page string) {
	v.t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/console/usage"+path, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return v.send(organization, role, request, status, texts...)
}

func (v visitor) send(organization, role string, request *http.Request, status int, texts ...string) (page string) {
	v.t.Helper()
	session := identity.SessionPrefix + strings.Repeat("e", 48)
	issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, ID: "ses_1", Organization: organization, Member: "mem_1",
		Scopes: []string{identity.RoleScope(role)}, State: contract.CredentialActive, Version: time.Now().UnixNano()})
	testenv.Must(v.t, v.credentials.Apply(contract.CredentialKey(session), issued))
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	answer := httptest.NewRecorder()
	v.router.ServeHTTP(answer, request)
	page = answer.Body.String()
	for _, text := range append(texts, "") {
		text, lacks := strings.CutPrefix(text, "no ")
		if answer.Code != status || strings.Contains(page, text) == (lacks && text != "") {
			v.t.Errorf("%s of %s, %s: %d, want %d and %q (absent: %t):\n%s", role, organization, request.URL, answer.Code, status, text, lacks, page)
		}
	}
	return page
}

// Operators see the accounts of all organizations, by id and state; for
// others the page does not exist.
func TestOrganizationsPage(t *testing.T) {
	l := ledgertest.New(t)
	v := newVisitor(t, l, "host")
	for _, id := range []string{"acme", "evil", "host"} {
		l.Start(t, id, ledger.Indie)
	}
	l.Book(t, l.NewCharge("acme", 100), l.NewCharge("evil", 7))
	style := styleLink.FindString(v.get("host", "owner", "", http.StatusOK, "All organizations"))
	v.send("host", "owner", httptest.NewRequest(http.MethodGet, "/"+strings.TrimPrefix(style, "/"), nil), http.StatusOK, "{")
	v.get("host", "owner", "/organizations", http.StatusOK, ">acme<", ">evil<", ">host<", ">exhausted<", "100 B (100%)", "2026-11-20", ">none<")
	v.get("host", "owner", "/organizations?q=vi", http.StatusOK, ">evil<", "no >acme<", `value="vi"`)
	v.get("host", "owner", "/organizations?state=exhausted", http.StatusOK, ">acme<", "no >evil<", `<option value="exhausted" selected>`)
	v.get("host", "owner", "/organizations?q=none", http.StatusOK, "No organization matches")
	v.get("host", "owner", "/organizations?cursor=x", http.StatusBadRequest, "cursor")
	v.get("acme", "owner", "", http.StatusOK, "no All organizations")
	for _, other := range [][2]string{{"acme", "owner"}, {"host", "billing"}, {"host", "admin"}} {
		v.get(other[0], other[1], "/organizations", http.StatusNotFound, "no evil")
	}
	newVisitor(t, l, "").get("", "owner", "/organizations", http.StatusNotFound)
}

// The usage page shows the next funds and the budgets.
func TestFundsOnTheUsagePage(t *testing.T) {
	l := ledgertest.New(t)
	v := newVisitor(t, l, "")
	l.Start(t, "acme", ledger.Indie)
	expires := l.Now().AddDate(0, 0, 3)
	for _, spec := range []ledger.Grant{
		{Amount: 50, Priority: ledger.PlanPriority, Reason: "goodwill"}, {Amount: 40, Priority: ledger.PlanPriority, Expires: expires, Reason: "launch"},
		{Amount: 30, Priority: 1, Starts: expires, Reason: "next week"},
	} {
		if _, err := l.Grants.Grant(t.Context(), "acme", unitofwork.Request{}, spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Budgets.Set(t.Context(), "acme", unitofwork.Request{}, ledger.BudgetSpec{Spender: ledger.Spender{Project: "project"}, Bytes: 10}); err != nil {
		t.Fatal(err)
	}
	l.Book(t, l.NewCharge("acme", 10))
	page := v.get("acme", "viewer", "", http.StatusOK, "Quota and grants", "30 B</td>", "10 B of 10 B (100%)", "its budget is larger", "starts <time")
	last := 0
	for _, name := range []string{"launch", "plan&#39;s quota", "goodwill", "next week"} {
		at := strings.Index(page, name)
		if at < last {
			t.Errorf("%q does not come behind the others:\n%s", name, page)
		}
		last = at
	}
}
