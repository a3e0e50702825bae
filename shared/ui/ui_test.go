package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/ui"
)

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`

var formPage = fstest.MapFS{"templates/form.html": {Data: []byte(`{{define "content"}}
{{template "field" .Data.Field}}{{template "empty" .Data.Empty}}{{template "pager" .Data.Pager}}{{template "time" .Data.At}}
{{template "code" .Data.Code}}{{template "variants" .Data.Variants}}{{template "awaited" .Data.Awaited}}{{template "script" "copy"}}
{{end}}`)}}

type formData struct {
	Field ui.Field
	Empty ui.Empty
	Pager ui.Pager
	At    time.Time

	Code     ui.Code
	Variants ui.Variants
	Awaited  ui.Awaited
}

// serve answers a request by a router with one page of everything, a
// form to submit, a fault and a panic.
func serve(t *testing.T, request *http.Request, view ui.View) *httptest.ResponseRecorder {
	t.Helper()
	pages := ui.NewPages(ui.Logs, formPage)
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Group(func(r chi.Router) {
		r.Use(pages.Protect)
		show := func(w http.ResponseWriter, r *http.Request) error {
			pages.Write(w, r, http.StatusOK, "form", view)
			return nil
		}
		r.Get("/console/form", pages.Handle(show))
		r.Post("/console/form", pages.Handle(show))
		r.Get("/console/broken", pages.Handle(func(http.ResponseWriter, *http.Request) error {
			return errors.New("password=hunter2 of database orders")
		}))
		r.Get("/console/none", pages.Handle(func(http.ResponseWriter, *http.Request) error {
			return httpapi.NotFound("group", hostile)
		}))
	})
	ui.MountAssets(router)
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, request)
	return answer
}

func get(t *testing.T, path string, view ui.View) *httptest.ResponseRecorder {
	t.Helper()
	return serve(t, httptest.NewRequest(http.MethodGet, path, nil), view)
}

var hostileCode = ui.Code{ID: hostile, Label: hostile, Text: hostile, Copy: hostile}

func hostileView() ui.View {
	return ui.View{
		Title: hostile,
		Tabs:  []ui.Link{{Text: hostile, Href: "javascript:alert(1)"}},
		Flash: &ui.Flash{Text: hostile},
		Data: formData{
			Field: ui.Field{Name: "name", Label: hostile, Value: hostile, Hint: hostile, Fault: hostile},
			Empty: ui.Empty{Title: hostile, Text: hostile, Action: &ui.Link{Text: hostile, Href: "javascript:alert(1)"}},
			Code:  hostileCode, Variants: ui.Variants{Label: hostile, Of: []ui.Variant{{Name: hostile, Code: hostileCode}}},
			Awaited: ui.Awaited{Text: hostile, Poll: hostile},
		},
	}
}

// Text stays text in every part of a page.
func TestTextsStayTexts(t *testing.T) {
	body := get(t, "/console/form", hostileView()).Body.String()
	for _, bad := range []string{"<script>", "<img src=x", "javascript:"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q:\n%s", bad, body)
		}
	}
	if !strings.Contains(html.UnescapeString(body), hostile) {
		t.Error("the text is not shown at all")
	}
}

// Every page, error pages included, allows no script but the console's
// own, no markup made by a script, no frame and nothing from other sites.
func TestPagesAreProtected(t *testing.T) {
	for _, path := range []string{"/console/form", "/console/broken", "/console/none"} {
		header := get(t, path, hostileView()).Header()
		policy := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'",
			"; script-src 'self';", "; style-src 'self';", "; connect-src 'self';", "trusted-types 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %q", path, policy, want)
			}
		}
		if regexp.MustCompile(`unsafe|https?:|data:|blob:|\*|nonce`).MatchString(policy) {
			t.Errorf("%s: the policy %q allows more than the console's own", path, policy)
		}
		if got := header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control = %q, want no-store", path, got)
		}
		if got := header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options = %q", path, got)
		}
	}
}

// The policy forbids inline scripts and styles, so the shell must not need any.
func TestShellHasNoInlineCode(t *testing.T) {
	body := get(t, "/console/form", ui.View{Title: "Form", Data: formData{}}).Body.String()
	if found := regexp.MustCompile(`(?i)<script>|<style|\sstyle=|\son[a-z]+=|http://|https://`).FindString(body); found != "" {
		t.Errorf("the page has %q", found)
	}
}

// A form that another site sends is refused before it reaches a
// page, by the headers that browsers set.
func TestOtherSitesCannotPost(t *testing.T) {
	cases := []struct {
		name, site, origin string
		want               int
	}{
		{"the console itself", "same-origin", "https://weir.example", http.StatusOK},
		{"another site", "cross-site", "https://evil.example", http.StatusForbidden},
		{"a neighbor under the same domain", "same-site", "https://blog.weir.example", http.StatusForbidden},
		{"an old browser at another site", "", "https://evil.example", http.StatusForbidden},
		{"a page that hides its origin", "", "null", http.StatusForbidden},
		{"no browser", "", "", http.StatusOK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, "https://weir.example/console/form", nil)
			setIfAny(request.Header, "Sec-Fetch-Site", c.site)
			setIfAny(request.Header, "Origin", c.origin)
			if got := serve(t, request, ui.View{Data: formData{}}).Code; got != c.want {
				t.Errorf("status = %d, want %d", got, c.want)
			}
		})
	}
}

func setIfAny(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}

// A form that is no UTF-8 is the client's fault, before anything is done.
func TestReadForm(t *testing.T) {
	for body, want := range map[string]string{"name=%C3%A9": "é", "name=%ff": "", "%ff=name": "", "name=%c3&name=%a9": "", "name=%zz": "", "name=" + strings.Repeat("a", 64<<10): ""} {
		r := httptest.NewRequest(http.MethodPost, "/console/do", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		err := ui.ReadForm(httptest.NewRecorder(), r)
		if want != "" && (err != nil || r.PostForm.Get("name") != want) {
			t.Errorf("%s: %q, %v", body, r.PostForm.Get("name"), err)
		}
		var problem *httpapi.Problem
		if want == "" && (!errors.As(err, &problem) || problem.Status != http.StatusBadRequest) {
			t.Errorf("%.20s: %v", body, err)
		}
	}
}

// A failure shows nothing of the inside, only what it takes to report it.
func TestFailuresShowNothingInside(t *testing.T) {
	answer := get(t, "/console/broken", ui.View{})
	body := answer.Body.String()
	if answer.Code != http.StatusInternalServerError || strings.Contains(body, "hunter2") || strings.Contains(body, "orders") {
		t.Errorf("status %d: %s", answer.Code, body)
	}
	if !strings.Contains(body, answer.Header().Get("X-Request-Id")) {
		t.Error("the page lacks the request's id")
	}
	if answer := get(t, "/console/none", ui.View{}); answer.Code != http.StatusNotFound || strings.Contains(answer.Body.String(), "<script") {
		t.Errorf("status %d: %s", answer.Code, answer.Body)
	}
}

// A field names its fault and its hint to those who do not see them beside it.
func TestFieldDescribesItself(t *testing.T) {
	body := get(t, "/console/form", ui.View{Data: formData{Field: ui.Field{Name: "name", Label: "Name", Hint: "Any.", Fault: "It is missing."}}}).Body.String()
	for _, want := range []string{`<label for="field-name"`, `aria-invalid="true"`, `aria-describedby="fault-name hint-name"`, `id="fault-name"`, `id="hint-name"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the field lacks %s:\n%s", want, body)
		}
	}
}

// What is wrong with a search is said without the names of parameters, which people never see.
func TestQueryFault(t *testing.T) {
	for detail, want := range map[string]string{
		`q is "is:x".`: "Use words.", `At character 1 of q: "<" is no operator here.`: `At character 1: "<" is no operator here. Use words.`,
		`"loud" is not a level.`: `"loud" is not a level. Use words.`,
	} {
		if got := ui.QueryFault(httpapi.Invalid("?q", httpapi.CodeInvalidRequest, detail, "Use words."), "q"); got != want {
			t.Errorf("%s is shown as %q", detail, got)
		}
	}
	if got := ui.QueryFault(httpapi.Invalid("?from", httpapi.CodeInvalidRequest, "from is \"x\".", "Use a time."), "q"); got != "" {
		t.Errorf("another parameter's is %q", got)
	}
}

// The pager leads on without losing the filters.
func TestPagerKeepsFilters(t *testing.T) {
	next := "abc"
	request := httptest.NewRequest(http.MethodGet, "/console/logs?level=error&cursor=xyz&q=a+%26b", nil)
	got := ui.NewPager(request, &next)
	want := ui.Pager{First: "/console/logs?level=error&q=a+%26b", Next: "/console/logs?cursor=abc&level=error&q=a+%26b"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := ui.NewPager(httptest.NewRequest(http.MethodGet, "/console/logs", nil), nil); got != (ui.Pager{}) {
		t.Errorf("on the only page: got %+v", got)
	}
}

// An asset may be cached forever under its own address, and not
// under that of another version.
func TestAssets(t *testing.T) {
	page := get(t, "/console/form", ui.View{Data: formData{}}).Body.String()
	for name, contentType := range map[string]string{"weir.css": "text/css; charset=utf-8", "weir.svg": "image/svg+xml", "copy.js": "text/javascript; charset=utf-8"} {
		own := regexp.MustCompile(`/console/assets/[0-9a-f]{16}/` + regexp.QuoteMeta(name)).FindString(page)
		for path, caching := range map[string]string{own: "public, max-age=31536000, immutable", "/console/assets/0000000000000000/" + name: "no-cache"} {
			answer := get(t, path, ui.View{})
			if answer.Code != http.StatusOK || answer.Header().Get("Cache-Control") != caching || answer.Header().Get("Content-Type") != contentType {
				t.Errorf("%s: %d %v", path, answer.Code, answer.Header())
			}
		}
	}
	if answer := get(t, "/console/assets/0000000000000000/none.js", ui.View{}); answer.Code != http.StatusNotFound {
		t.Errorf("an asset that is none: %d", answer.Code)
	}
}

// What is waited for answers with its status whether it is there.
func TestAwaited(t *testing.T) {
	for done, want := range map[bool]int{false: http.StatusAccepted, true: http.StatusOK} {
		answer := httptest.NewRecorder()
		ui.WriteAwaited(answer, ui.Awaited{Text: "<b>", Done: done})
		if answer.Code != want || answer.Body.String() != "<b>" || answer.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("done %t: %d %v %q", done, answer.Code, answer.Header(), answer.Body)
		}
		page := get(t, "/console/form", ui.View{Data: formData{Awaited: ui.Awaited{Done: done, Poll: "/console/there"}}}).Body.String()
		if strings.Contains(page, `data-poll="/console/there"`) == done || strings.Contains(page, `data-state="done"`) != done {
			t.Errorf("done %t: %s", done, page)
		}
	}
}

// A flash is shown once, and shows only texts of the program itself.
func TestFlash(t *testing.T) {
	texts := map[string]string{"done": "It is done."}
	set := httptest.NewRecorder()
	ui.SetFlash(set, "done")
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.AddCookie(set.Result().Cookies()[0])
	taken := httptest.NewRecorder()
	if flash := ui.TakeFlash(taken, request, texts); flash == nil || flash.Text != "It is done." {
		t.Errorf("got %+v", flash)
	}
	if cookies := taken.Result().Cookies(); len(cookies) != 1 || cookies[0].MaxAge >= 0 {
		t.Errorf("the flash stays: %v", cookies)
	}
	if flash := ui.TakeFlash(httptest.NewRecorder(), request, map[string]string{}); flash != nil {
		t.Errorf("an unknown code says %+v", flash)
	}
}

func TestFormats(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1535: "1.4 KiB", 1<<20 - 1: "1023.9 KiB",
		500 << 30: "500.0 GiB", 3 << 40: "3.0 TiB", -2048: "-2.0 KiB", 5000 << 40: "5000.0 TiB"} {
		if got := ui.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := ui.Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestMoments(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for passed, want := range map[time.Duration]string{
		-time.Second: "just now", 59 * time.Second: "just now", 90 * time.Second: "1 min ago", 59 * time.Minute: "59 min ago",
		47 * time.Hour: "47 h ago", 49 * time.Hour: "2 days ago", 30 * 24 * time.Hour: "2026-10-22",
	} {
		if got := ui.NewMoment(now.Add(-passed), now); got.Ago != want || !got.At.Equal(now.Add(-passed)) {
			t.Errorf("%s: %+v, want %q", passed, got, want)
		}
	}
}

func TestRoles(t *testing.T) {
	for want, roles := range map[string][]string{"owners": {"owner"}, "owners or billing members": {"owner", "billing"}, "owners, admins or viewers": {"owner", "admin", "viewer"}} {
		if got := ui.Roles(roles, "or"); got != want {
			t.Errorf("%v are %q, want %q", roles, got, want)
		}
	}
}

// The header names the organization, but never by its id.
func TestHeaderNamesTheOrganization(t *testing.T) {
	for name, shown := range map[string]bool{"Acme & Co": true, "org_1": false, "": false} {
		pages := ui.NewPages(ui.Logs, formPage).Named(func(context.Context, string) string { return name })
		reader := identity.NewContext(t.Context(), identity.Principal{Organization: "org_1", Scopes: []string{identity.RoleScope("owner")}})
		answer := httptest.NewRecorder()
		pages.Write(answer, httptest.NewRequest(http.MethodGet, "/console/page", nil).WithContext(reader), http.StatusOK, "form", hostileView())
		body := answer.Body.String()
		if strings.Contains(body, `class="where"`) != shown || shown && !strings.Contains(body, "Acme &amp; Co") || !strings.Contains(body, "Your role is owner") {
			t.Errorf("called %q: %s", name, body)
		}
	}
}

// A role sees only the sections that it may read, in the navigation and
// by address. A refusal names whom to ask.
func TestSectionsByRole(t *testing.T) {
	for role, open := range map[string]map[ui.Section]bool{
		"owner":   {ui.Overview: true, ui.Logs: true, ui.Errors: true, ui.Usage: true, ui.Settings: true},
		"viewer":  {ui.Overview: true, ui.Logs: true, ui.Errors: true, ui.Usage: true, ui.Settings: true},
		"billing": {ui.Usage: true, ui.Settings: true},
		"auditor": {ui.Settings: true}, // of a newer version: this one does not know its rights
	} {
		for _, section := range []ui.Section{ui.Overview, ui.Logs, ui.Errors, ui.Usage, ui.Settings} {
			answer := visit(t, section, role)
			body := answer.Body.String()
			if open[section] != (answer.Code == http.StatusOK) {
				t.Errorf("%s as %s: %d", section, role, answer.Code)
			}
			if answer.Code == http.StatusForbidden && !strings.Contains(body, "Your role here is "+role+", which may not ") {
				t.Errorf("%s as %s: %s", section, role, body)
			}
			for path, linked := range map[string]bool{"/console/overview": open[ui.Overview], "/console/logs": open[ui.Logs], "/console/errors": open[ui.Errors], "/console/usage": open[ui.Usage]} {
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
	for role, want := range map[string]string{"owner": "/console/overview", "billing": "/console/usage", "auditor": "/console/settings"} {
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
	testenv.Must(t, credentials.Apply(contract.CredentialKey(secret), encoded))
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

// The time up to now becomes a time of the API, unless the reader names
// one; links keep what no API knows.
func TestWithTimes(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 30, 5, time.UTC)
	for query, want := range map[string][2]string{
		"":                                 {"from=2026-11-21T11%3A00%3A30Z", "from=2026-11-21T11%3A00%3A30Z"},
		"last=7d&q=a":                      {"from=2026-11-14T12%3A00%3A30Z&q=a", "from=2026-11-14T12%3A00%3A30Z&q=a"},
		"last=any&cursor=c":                {"cursor=c&last=any", "cursor=c"},
		"from=&to=&last=15m":               {"from=2026-11-21T11%3A45%3A30Z", "from=2026-11-21T11%3A45%3A30Z"},
		"last=1h&to=2026-11-21T01:00":      {"to=2026-11-21T01%3A00%3A00Z", "to=2026-11-21T01%3A00%3A00Z"},
		"from=2026-11-21T01:00:00.5&to=":   {"from=2026-11-21T01%3A00%3A00.5Z", "from=2026-11-21T01%3A00%3A00.5Z"},
		"last=year":                        {"last=year", "last=year"},
		"from=soon":                        {"from=soon", "from=soon"},
		"to=2026-11-21T01:00:00Z&last=any": {"to=2026-11-21T01%3A00%3A00Z", "to=2026-11-21T01%3A00%3A00Z"},
	} {
		shown, asked := ui.WithTimes(httptest.NewRequest(http.MethodGet, "/console/logs?"+query, nil), "1h", now)
		if got := [2]string{shown.URL.RawQuery, asked.URL.RawQuery}; got != want {
			t.Errorf("%s becomes %q, want %q", query, got, want)
		}
	}
}

// The bars of a histogram stand side by side, are as high as their share
// of the highest, and lead to their time.
func TestHistogram(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/console/logs?q=a&last=1h&cursor=c", nil)
	first := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h := ui.NewHistogram(r, "entries", first, time.Hour, nil, []map[string]int64{{"info": 30, "error": 10}, {}, {"debug": 20}})
	if h.Max != 40 || len(h.Bars) != 3 || h.Last != first.Add(3*time.Hour) || !strings.HasPrefix(h.Label, "60 entries from 2026-11-21 12:00:00 UTC") ||
		!strings.HasSuffix(h.Label, "at most 40 in an hour") {
		t.Fatalf("%+v", h)
	}
	parts := h.Bars[0].Parts
	if len(parts) != 2 || parts[0] != (ui.BarPart{Series: ui.Series{Class: "error", Name: "error"}, Count: 10, X: "0.0", Y: "45.0", Width: "360.0", Height: "15.0"}) || parts[1].Y != "0.0" || parts[1].Height != "45.0" {
		t.Errorf("the first bar has %+v", parts)
	}
	last := h.Bars[2]
	if last.Box.X != "800.0" || last.Href != "/console/logs?from=2026-11-21T14%3A00%3A00Z&q=a&to=2026-11-21T15%3A00%3A00Z" ||
		last.Text != "2026-11-21 14:00:00 UTC to 15:00:00 UTC: 20 entries, 20 debug" || len(h.Bars[1].Parts) != 0 {
		t.Errorf("the last bar is %+v", last)
	}
	series := []ui.Series{{Class: ui.SeriesClass(0), Name: "api"}, {Class: ui.SeriesClass(9), Name: "others"}}
	h = ui.NewHistogram(r, "entries", first, time.Hour, series, []map[string]int64{{"series-6": 1, "series-0": 3}})
	if h.Bars[0].Parts[0].Height != "45.0" || !strings.HasSuffix(h.Bars[0].Text, ": 4 entries, 3 api, 1 others") {
		t.Errorf("the bar by service is %+v", h.Bars[0])
	}
}

// The header says who reads, and of which project a page is: never one of others.
func TestHeaderSaysWhereAndWho(t *testing.T) {
	directory := identity.NewDirectory()
	for _, p := range []contract.ProjectCreated{{Organization: "org_1", Project: "prj_1", Name: "Shop & Co"}, {Organization: "org_2", Project: "prj_2", Name: "Lair"}} {
		fact, _ := json.Marshal(p)
		testenv.Must(t, directory.Apply(contract.TypeProjectCreated, fact))
	}
	pages := ui.NewPages(ui.Logs, formPage).Following(directory)
	show := func(query, of, name string) string {
		reader := identity.NewContext(t.Context(), identity.Principal{Organization: "org_1", Name: name, Scopes: []string{identity.RoleScope("viewer")}})
		view, answer := hostileView(), httptest.NewRecorder()
		view.Of = of
		pages.Write(answer, httptest.NewRequest(http.MethodGet, "/console/page"+query, nil).WithContext(reader), http.StatusOK, "form", view)
		return answer.Body.String()
	}
	const project = `<span class="unseen">Project </span><bdi>Shop &amp; Co</bdi>`
	if body := show("?project=prj_1", "", "Ada <b>"); !strings.Contains(body, project) || !strings.Contains(body, "<bdi>Ada &lt;b&gt;</bdi></summary>") ||
		!strings.Contains(body, `href="/console/errors?project=prj_1"`) || !strings.Contains(body, `href="/console/usage"`) {
		t.Errorf("of the query: %s", body)
	}
	if body := show("", "Shop & Co", ""); !strings.Contains(body, project) || !strings.Contains(body, "<summary><bdi>Account</bdi></summary>") {
		t.Errorf("of the page: %s", body)
	}
	for _, query := range []string{"?project=prj_2", "?project=prj_9", ""} {
		if body := show(query, "", ""); strings.Contains(body, `Project </span>`) || strings.Contains(body, "Lair") {
			t.Errorf("%q: %s", query, body)
		}
	}
}
