package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/console"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A desk is the console of org_1 with a database: session 1 is a viewer,
// 2 and 3 are developers.
type desk struct {
	t       *testing.T
	handler http.Handler
	service *saved.Service
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	credentials, directory := identity.NewCredentials(time.Now), identity.NewDirectory()
	for digit, role := range map[string]string{"1": "viewer", "2": "developer", "3": "developer"} {
		encoded, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, ID: "ses_" + digit, Organization: "org_1", Member: "mem_" + digit,
			Scopes: []string{identity.RoleScope(role)}, State: contract.CredentialActive})
		testenv.Must(t, credentials.Apply(contract.CredentialKey(session(digit)), encoded))
	}
	for _, member := range []string{`{"organization":"org_1","member":"mem_2","name":"Ada","role":"developer"}`,
		`{"organization":"org_1","member":"mem_3","name":"Bob","role":"developer"}`} {
		testenv.Must(t, directory.Apply(contract.TypeMemberAdded, []byte(member)))
	}
	created, _ := json.Marshal(contract.ProjectCreated{Organization: "org_1", Project: "prj_1", Name: "Shop"})
	testenv.Must(t, directory.Apply(contract.TypeProjectCreated, created))
	clock := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC) }
	mux := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: clock})
	ids := 0
	service := &saved.Service{
		Pool: pgtest.Open(t, postgres.Schema, postgres.Migrations()...), Directory: directory, MaxSearches: 10, MaxAlerts: 10, Publish: bus.SaveNotice, Published: func() {},
		Clock: clock, NewID: func() string {
			ids++
			return fmt.Sprint(ids)
		},
	}
	issued, _ := json.Marshal(contract.APIKeyIssued{Organization: "org_1", Project: "prj_1", APIKey: "key_1", Name: "Cart", Environment: "prod"})
	testenv.Must(t, directory.Apply(contract.TypeAPIKeyIssued, issued))
	found := &searches.Service{Searches: &shelf{}, Directory: directory}
	ruled := &rules.Service{Pool: service.Pool, Searches: found, Turns: rules.NewTurns(1, nil), Save: bus.SaveRules, Saved: func() {}, Clock: clock}
	console.Mount(mux, console.Config{
		Service: found, Saved: service, Rules: ruled, Directory: directory, Rejected: &rejected.Service{Pool: service.Pool, Searches: found, Clock: clock},
		Guard: identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now}), Clock: clock,
	})
	return &desk{t, routetest.Handler(mux), service}
}

// page gets a page as the member of a session.
func (d *desk) page(as, path string, want int, says ...string) string {
	d.t.Helper()
	return d.check(ask(d.t, d.handler, session(as), path), path, want, says)
}

func (d *desk) check(answer *httptest.ResponseRecorder, path string, want int, says []string) string {
	d.t.Helper()
	text := html.UnescapeString(answer.Body.String())
	if answer.Code != want {
		d.t.Errorf("%s: %d, want %d: %s", path, answer.Code, want, text)
	}
	for _, said := range says {
		if !strings.Contains(text, said) {
			d.t.Errorf("%s lacks %q:\n%s", path, said, text)
		}
	}
	return text
}

// post sends a form, and returns where it leads.
func (d *desk) post(as, path, form string, want int, says ...string) string {
	d.t.Helper()
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session(as)})
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, request)
	d.check(answer, path, want, says)
	return answer.Header().Get("Location")
}

// hidden are the hidden fields of the first form that a page sends to a path.
func hidden(t *testing.T, page, path string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(page, `action="`+path+`"`)
	if !found {
		t.Fatalf("there is no form to %s:\n%s", path, page)
	}
	form, _, _ = strings.Cut(form, "</form>")
	values := url.Values{}
	for _, field := range regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		values.Add(field[1], field[2])
	}
	return values
}

// A search is saved from the page Logs, shared, opened, changed and deleted.
func TestSavingASearch(t *testing.T) {
	d := newDesk(t)
	const query = "?q=checkout+level%3Aerror&project=prj_1&last=15m&field=metadata.user"
	page := d.page("2", "/console/logs"+query, 200, "Save this search")
	address := regexp.MustCompile(`/console/logs/searches/new\?[^"]*`).FindString(page)
	form := hidden(t, d.page("2", address, 200, "checkout level:error", "last 15m"), "/console/logs/searches/new")
	form.Set("name", "Checkout "+hostile)
	form.Set("shared", "everybody")
	to := d.post("2", "/console/logs/searches/new", form.Encode(), 303)
	if want := "/console/logs?field=metadata.user&last=15m&project=prj_1&q=checkout+level%3Aerror&saved=srch_1"; to != want {
		t.Fatalf("it opens %s, want %s", to, want)
	}
	if page := ask(t, d.handler, session("1"), to).Body.String(); strings.Contains(page, "<script>alert") {
		t.Error("the name is not escaped")
	}
	d.page("1", to, 200, "<summary>Checkout ") // a viewer opens it
	d.post("2", "/console/logs/searches/new", form.Encode(), 422, "of this name already")
	form.Set("name", " ")
	d.post("2", "/console/logs/searches/new", form.Encode(), 422, "Use 1 to 80 characters")
	form.Set("name", "Mine")
	d.post("1", "/console/logs/searches/new", form.Encode(), 403, "Ask one of the owners")
	form.Set("shared", "")
	d.post("1", "/console/logs/searches/new", form.Encode(), 303)
	d.page("1", "/console/logs/searches", 200, "Mine", "only you")
	if page := d.page("2", "/console/logs/searches", 200, "Set an alert"); strings.Contains(page, "Mine") {
		t.Error("another's search is shown")
	}

	const edit = "/console/logs/searches/srch_1/edit"
	first := hidden(t, d.page("2", edit, 200, "Change a saved search"), edit)
	second := hidden(t, d.page("3", edit+"?q=refund", 200, "refund"), edit)
	first.Set("name", "Checkout fails")
	first.Set("shared", "everybody")
	d.post("2", edit, first.Encode(), 303)
	second.Set("name", "Refunds")
	second.Set("shared", "everybody")
	d.post("3", edit, second.Encode(), 409, "Somebody else has changed this search meanwhile", "Checkout fails", "checkout level:error")
	d.post("1", edit, first.Encode(), 403)

	const remove = "/console/logs/searches/srch_1/delete"
	d.post("3", remove, "version=1", 409)
	if to := d.post("3", remove, "version=2", 303); to != "/console/logs/searches" {
		t.Errorf("it leads to %s", to)
	}
	d.page("2", edit, 404)
}

// An alert is set, shown with what came of it, muted, tried, changed and deleted.
func TestSettingAnAlert(t *testing.T) {
	d := newDesk(t)
	who := identity.Principal{ID: "ses_2", Organization: "org_1", Member: "mem_2", Scopes: []string{identity.RoleScope("developer")}}
	s, err := d.service.Create(t.Context(), who, ingest.SavedSearch{Name: "Checkout", Query: "checkout", Last: "1h"}, true, "")
	testenv.Must(t, err)
	path := "/console/logs/searches/" + s.ID + "/alert"
	d.page("2", path, 200, "Set an alert", `value="member:mem_2" checked`, `value="member:mem_3">Bob`)
	rule := url.Values{"version": {"0"}, "condition": {"fewer"}, "threshold": {"0"}, "window": {"300"}, "every": {"60"}, "times": {"2"}, "quiet": {"3600"},
		"examples": {"1"}, "mail": {"owner", "member:mem_2"}}
	d.post("2", path, rule.Encode(), 422, "Use 1 to be told that there are none")
	rule.Set("threshold", "many")
	d.post("2", path, rule.Encode(), 422, "Use 0 or more")
	rule.Set("threshold", "1")
	rule.Set("mail", "member:mem_9")
	d.post("2", path, rule.Encode(), 422, `"mem_9" is no member who reads logs`)
	rule["mail"] = []string{"owner", "member:mem_2"}
	d.post("1", path, rule.Encode(), 403)
	d.post("2", path, rule.Encode(), 303)
	d.post("3", path, rule.Encode(), 409, "Somebody else has changed this alert")

	d.evaluate(s.ID, ingest.Evaluation{At: time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC)}, ingest.Evaluation{At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
		ingest.Evaluation{At: time.Date(2026, 11, 21, 12, 1, 0, 0, time.UTC), Entries: 1234, Part: true})
	d.page("1", path, 200, `<span class="badge good">ok</span>`, "fewer than 1 entries in the last 5 minutes", "2 times in a row", "at least 1,234", "told",
		"3 evaluations from", "/console/logs?from=2026-11-21T11%3A55%3A00Z&q=checkout")
	d.post("2", path+"/mute", "for=3600", 303)
	d.page("2", path, 200, "Tell again", "until")
	d.post("2", path+"/mute", "", 303)
	d.page("2", path, 200, "Mute")
	d.post("2", path+"/test", "", 303)
	d.post("2", path+"/test", "", 409, "within the last minute")
	d.post("2", "/console/logs/searches/"+s.ID+"/edit", "name=Checkout&version=1", 422, "It has an alert")
	d.post("2", path+"/delete", "version=9", 409)
	d.post("2", path+"/delete", "version=1", 303)
	d.page("2", path, 200, "Set an alert")
}

// evaluate stores evaluations of an alert.
func (d *desk) evaluate(id string, evaluations ...ingest.Evaluation) {
	d.t.Helper()
	for _, e := range evaluations {
		err := pg.InTxAsSystem(d.t.Context(), d.service.Pool, func(tx pgx.Tx) error {
			a, err := postgres.FindAlert(d.t.Context(), tx, "org_1", id)
			if err != nil {
				return err
			}
			before := a.State
			outcome := a.Evaluate(e)
			_, err = postgres.SettleAlert(d.t.Context(), tx, &a, e, outcome, a.State != before)
			return err
		})
		testenv.Must(d.t, err)
	}
}
