package app_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// visit opens the usage page with a session.
func visit(ledger *app.App, session, query string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "/console/usage"+query, nil)
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	recorder := httptest.NewRecorder()
	ledger.Handler().ServeHTTP(recorder, request)
	return recorder
}

// The usage page shows the books to members of the organization alone,
// and escapes texts.
func TestUsagePage(t *testing.T) {
	const hostile = `"><script>alert(1)</script>`
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	r.create("evil", "indie")
	charge := logs("acme", 250)
	charge.Project = hostile
	r.Accept(charge, logs("acme", 100))
	r.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, "acme", contract.ProjectCreated{Organization: "acme", Project: "acme-project", Name: "Shop <b>"})
	acme, evil, unheard := r.SignIn("acme", "billing"), r.SignIn("evil", "billing"), r.SignIn("nobody", "billing")
	r.awaitCounted()
	r.awaitAccount("evil")
	awaitReady(t, ledger)
	var page string
	testenv.Eventually(t, waitTimeout, func() error {
		answer := visit(ledger, acme, "")
		if page = answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(page, "350 B") || strings.Contains(page, "acme-project") {
			return fmt.Errorf("%d %s", answer.Code, page)
		}
		return nil
	})
	for _, want := range []string{"1000 B", "(35%)", "active", `<rect class="used" width="350"`, "Logs accepted", "Allowance of the period", "Shop &lt;b&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<script") || !strings.Contains(html.UnescapeString(page), hostile) {
		t.Errorf("the id of a project that has no name is not shown as it is:\n%s", page)
	}
	foreign := visit(ledger, evil, "")
	if foreign.Code != http.StatusOK || strings.Contains(foreign.Body.String(), "acme") || !strings.Contains(foreign.Body.String(), "0 B") {
		t.Errorf("another organization sees %d %s", foreign.Code, foreign.Body)
	}
	if answer := visit(ledger, unheard, ""); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "being opened") {
		t.Errorf("an organization without books sees %d %s", answer.Code, answer.Body)
	}
	for name, session := range map[string]string{"nobody": "", "a stranger": "weirses_" + strings.Repeat("0", 48), "a token": r.token("acme", "billing:read")} {
		if answer := visit(ledger, session, ""); answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != identity.SignInPath {
			t.Errorf("%s gets %d", name, answer.Code)
		}
	}
	if answer := visit(ledger, acme, "?cursor=abc"); answer.Code != http.StatusBadRequest {
		t.Errorf("a cursor that is none: %d", answer.Code)
	}
}

// The entries continue after the first page, and end.
func TestUsagePages(t *testing.T) {
	r := newRig(t)
	ledger, _ := r.start()
	r.create("acme", "indie")
	for range 30 {
		r.Accept(logs("acme", 7))
	}
	session := r.SignIn("acme", "billing")
	r.awaitCounted()
	r.awaitAccount("acme")
	awaitReady(t, ledger)
	first := visit(ledger, session, "").Body.String()
	before, _, found := strings.Cut(first, `" rel="next"`)
	if !found {
		t.Fatalf("there is no next page:\n%s", first)
	}
	next := before[strings.LastIndex(before, `"/console/usage`)+len(`"/console/usage`):]
	second := visit(ledger, session, html.UnescapeString(next)).Body.String()
	if rows := strings.Count(first, "Logs accepted") + strings.Count(second, "Logs accepted"); rows != 30 {
		t.Errorf("%d charges on two pages, want 30", rows)
	}
	if strings.Contains(second, `rel="next"`) || !strings.Contains(second, "First page") {
		t.Errorf("the last page:\n%s", second)
	}
}
