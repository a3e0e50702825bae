package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping/internal/console"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

var session = identity.SessionPrefix + strings.Repeat("a", 48)

// newPages are the pages of groups of AlphaError and BetaError,
// and the session of a member.
func newPages(t *testing.T) http.Handler { return pagesFor(t, "viewer") }

// pagesFor are the pages for a role.
func pagesFor(t *testing.T, role string) http.Handler { return pagesAs(t, groupingtest.New(t), role) }

// pagesAs are the pages of a service for a role.
func pagesAs(t *testing.T, service *groups.Service, role string) http.Handler {
	return pagesWith(t, service, identity.NewDirectory(), role)
}

func pagesWith(t *testing.T, service *groups.Service, projects *identity.Directory, role string) http.Handler {
	t.Helper()
	credentials := identity.NewCredentials(time.Now)
	issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, ID: "ses_1", Organization: "acme", Member: "mem_1",
		Scopes: []string{identity.RoleScope(role)}, State: contract.CredentialActive, Version: 1})
	if err := credentials.Apply(contract.CredentialKey(session), issued); err != nil {
		t.Fatal(err)
	}
	created, _ := json.Marshal(contract.ProjectCreated{Organization: "acme", Project: "shop", Name: "Shop"})
	if err := projects.Apply(contract.TypeProjectCreated, created); err != nil {
		t.Fatal(err)
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	console.Mount(router, console.Config{Service: service, Directory: projects, Guard: guard, Clock: time.Now})
	return routetest.Handler(router)
}

func get(pages http.Handler, path string) (int, string) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

var styleLink = regexp.MustCompile(`/console/assets/[^"]+\.css`)

var groupLink = regexp.MustCompile(`href="(/console/errors/grp_[^"?]+)"`)

var logsLinks = regexp.MustCompile(`href="/console/logs\?environment=[^&]+&amp;project=[^&]+&amp;to=[0-9TZ%A.-]+".* href="/console/logs\?environment=[^&]+&amp;from=[0-9TZ%A.-]+&amp;order=asc&amp;project=[^&"]+"`)

// The list shows each kind of error and links
// to its group, which shows why it is one.
func TestErrorPages(t *testing.T) {
	pages := newPages(t)
	status, list := get(pages, "/console/errors?q=alpha")
	link := groupLink.FindStringSubmatch(list)
	if status != http.StatusOK || link == nil || strings.Contains(list, "BetaError") {
		t.Fatalf("%d %s", status, list)
	}
	if status, style := get(pages, styleLink.FindString(list)); status != http.StatusOK || style == "" {
		t.Errorf("its style: %d %q", status, style)
	}
	if status, group := get(pages, link[1]); !logsLinks.MatchString(group) {
		t.Errorf("%d, no links to the logs around a sample: %s", status, group)
	}
	for asked, want := range map[string]string{"": "entry2", "?sample=entry0": "entry0", "?sample=nothing": "entry2"} {
		_, group := get(pages, link[1]+asked)
		place := regexp.MustCompile(`(?s)<div data-part="entry" data-query="([^"]+)"><p.*?</div>`).FindAllStringSubmatch(group, -1)
		if len(place) != 1 || strings.Count(group, "<details class=\"panel\" id=\"sample\" open>") != 1 {
			t.Fatalf("%d places: %s", len(place), group)
		}
		if query, _ := url.ParseQuery(html.UnescapeString(place[0][1])); query.Get("id") != want || query.Get("project") != "shop" || query.Get("time") == "" {
			t.Errorf("%s: %v, want %s", asked, query, want)
		}
	}
	if status, group := get(pages, link[1]); status != http.StatusOK || !strings.Contains(group, "A.java") || !strings.Contains(group, "Why these are one group") || !strings.Contains(group, "known library or runtime") {
		t.Errorf("%d %s", status, group)
	}
	for path, want := range map[string]int{
		"/console/errors?cursor=x": 400, "/console/errors?project=lair": 404, "/console/errors/grp_0": 404, "/console/errors/%ff": 404,
	} {
		if status, body := get(pages, path); status != want {
			t.Errorf("%s: %d, want %d: %s", path, status, want, body)
		}
	}
}

// Each filter of the list hides what it does not match and keeps
// its value; one that can't be read is named at its field.
func TestFilters(t *testing.T) {
	pages := newPages(t)
	for query, shows := range map[string]bool{
		"": true, "level=error": true, "level=debug": false, "environment=prod": true, "environment=moon": false,
		"from=2000-01-01T00:00": true, "to=2000-01-01T00:00:30": false, "from=2999-01-01T00:00:00Z": false,
	} {
		status, body := get(pages, "/console/errors?"+query)
		if status != http.StatusOK || strings.Contains(body, "AlphaError") != shows || (query != "" && !strings.Contains(body, "Clear all")) {
			t.Errorf("%q: %d, shown %t: %s", query, status, !shows, body)
		}
	}
	for query, field := range map[string]string{
		"from=soon": "from", "from=2026-01-02T00:00&to=2026-01-01T00:00": "to", "q=+": "q", "environment=" + strings.Repeat("x", 300): "environment",
	} {
		if status, body := get(pages, "/console/errors?"+query); status != http.StatusUnprocessableEntity || !strings.Contains(body, `id="fault-`+field+`"`) {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
}

// The tab of the list that is shown is marked, and each leads to its list
// whatever state the search line names.
func TestTabs(t *testing.T) {
	pages := newPages(t)
	current := regexp.MustCompile(`<a href="([^"]*)" aria-current="page">([^<]*)</a>`)
	for asked, want := range map[string]string{
		"": "Unresolved", "status=resolved": "Resolved", "q=is:resolved": "Resolved", "status=ignored&q=alpha+is:archived": "Archived", "status=all": "All",
		"status=all&q=is:unresolved": "Unresolved", "new_since=deploy": "New since the last deploy", "status=resolved&q=+": "Resolved",
	} {
		_, list := get(pages, "/console/errors?"+asked)
		_, list, _ = strings.Cut(list, "<main")
		if found := current.FindStringSubmatch(list); found == nil || found[2] != want {
			t.Errorf("%q marks %q, want %q", asked, found, want)
		}
	}
	shows(t, pages, "/console/errors?q=alpha+is:archived", `href="/console/errors?q=alpha&amp;status=ignored"`, `href="/console/errors?q=alpha"`)
}

// The list and the group show how often an error happened, and lead to entries like it.
func TestNumbers(t *testing.T) {
	pages := newPages(t)
	_, list := get(pages, "/console/errors?q=alpha")
	if !strings.Contains(list, `class="spark"`) || !strings.Contains(list, "New since the last deploy") {
		t.Error(list)
	}
	link := groupLink.FindStringSubmatch(list)[1]
	_, group := get(pages, link)
	if !strings.Contains(group, `<a href="`+link+`/occurrences">All occurrences</a>`) {
		t.Error("the group does not lead to its occurrences")
	}
	for path, want := range map[string]string{
		"/console/errors?sort=count&q=alpha": `aria-sort="descending"><a href="/console/errors?q=alpha&amp;sort=count">Count</a>`,
		"/console/errors?sort=users":         "of the 2,000 seen last", "/console/errors?sort=first_seen": "the newest one comes first",
		link: `aria-current="page">90 days`, link + "?by=hour": `aria-current="page">24 hours`, "/console/errors?new_since=deploy": "No group matches",
	} {
		if status, body := get(pages, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// What is kept by day is not shown as if it were of the last 24 hours.
func TestNumbersOfWholeDays(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	link := groupLink.FindStringSubmatch(list)[1]
	for path, want := range map[string]bool{link: false, link + "?by=hour": true} {
		if _, page := get(pages, path); strings.Contains(page, "of whole days: from") != want {
			t.Errorf("%s: want that said: %v", path, want)
		}
	}
}

// The trace of the chosen sample follows actions, numbers and chart; what one looks up stands below or beside it.
func TestGroupBeginsWithItsTrace(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	_, page := get(pages, groupLink.FindStringSubmatch(list)[1])
	last := -1
	for _, part := range []string{`class="decide"`, "<dt>In this time", `class="bars"`, `id="sample"`, `id="activity"`, `id="samples"`, `<dialog id="keys"`} {
		at := strings.Index(page, part)
		if at < last {
			t.Errorf("%s is at %d, and what comes before it at %d", part, at, last)
		}
		last = at
	}
	if n := strings.Count(page, `data-part="entry"`); n != 1 {
		t.Errorf("the log store fills %d places", n)
	}
}
