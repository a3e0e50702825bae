package console_test

import (
	"context"
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

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/console"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/ingest/internal/tails"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`

// A shelf is a store with results by organization that records the last search.
type shelf struct {
	found map[string]ingest.Result
	asked ingest.Search
	as    string
}

func (s *shelf) Page(_ context.Context, organization string, search ingest.Search) (*searches.Answer, error) {
	s.asked, s.as = search, organization
	return &searches.Answer{Result: s.found[organization]}, nil
}

func (s *shelf) Count(_ context.Context, organization string, count ingest.Count, top int) (ingest.Counted, error) {
	counter := count.NewCounter()
	for _, found := range s.found[organization].Found {
		counter.Add([]ingest.Stored{found.Stored}, found.Project)
	}
	return counter.Result(top), nil
}

func entry(t *testing.T, members map[string]any) ingest.Found {
	t.Helper()
	line := map[string]any{"timestamp": "2026-11-21T09:30:00.25Z", "level": "error", "message": "checkout failed"}
	for name, value := range members {
		line[name] = value
	}
	text, err := json.Marshal(line)
	testenv.Must(t, err)
	at, _ := ingest.ParseInstant([]byte("2026-11-21T09:30:00.25Z"))
	level, _ := ingest.ParseSeverity([]byte(line["level"].(string)))
	return ingest.Found{Project: "prj_1", Stored: ingest.Stored{Place: ingest.Place{Time: at}, Level: level, Environment: "prod", Text: text}}
}

func session(digit string) string { return identity.SessionPrefix + strings.Repeat(digit, 48) }

// router has members of org_1 (session 1) and of org_2 (session
// 2), each with a project.
func router(t *testing.T, store searches.Finder) http.Handler {
	t.Helper()
	handler, _ := liveRouter(t, store)
	return handler
}

// liveRouter is router with the hub of its tails, which end soon.
func liveRouter(t *testing.T, store searches.Finder) (http.Handler, *tails.Hub) {
	t.Helper()
	credentials, directory := identity.NewCredentials(time.Now), identity.NewDirectory()
	for _, digit := range []string{"1", "2"} {
		encoded, _ := json.Marshal(contract.Credential{Kind: contract.CredentialSession, Organization: "org_" + digit, Member: "mem_" + digit,
			Scopes: []string{identity.RoleScope("viewer")}, State: contract.CredentialActive})
		testenv.Must(t, credentials.Apply(contract.CredentialKey(session(digit)), encoded))
		created, _ := json.Marshal(contract.ProjectCreated{Organization: "org_" + digit, Project: "prj_" + digit, Name: "Shop " + digit + hostile})
		testenv.Must(t, directory.Apply(contract.TypeProjectCreated, created))
	}
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now})
	mux := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	service := &searches.Service{Searches: store, Directory: directory}
	hub := tails.New(tails.Config{Directory: directory, Viewers: 8, Work: time.Second, Clock: time.Now})
	testenv.Run(t, func(ctx context.Context) error {
		return hub.Run(ctx, func(ctx context.Context, begun func()) error {
			begun()
			<-ctx.Done()
			return nil
		}, nil)
	})
	console.Mount(chi.Router(mux), console.Config{
		Tails:   &ingesthttp.Tails{Hub: hub, Service: service, Guard: guard, Clock: time.Now, Longest: time.Second},
		Service: service, Directory: directory, Guard: guard, Clock: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC) },
	})
	return routetest.Handler(mux), hub
}

func get(t *testing.T, handler http.Handler, secret, query string) (status int, body string) {
	t.Helper()
	answer := ask(t, handler, secret, "/console/logs"+query)
	return answer.Code, answer.Body.String()
}

func ask(t *testing.T, handler http.Handler, secret, path string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: secret})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// Entries are escaped, and a long one is shortened.
func TestEntriesAreShownAsTheyAre(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{
		entry(t, map[string]any{"message": hostile + "\u0000\u202e", "environment": hostile, "error": map[string]any{"type": hostile}, hostile: hostile}),
		entry(t, map[string]any{"message": strings.Repeat("ä", 5<<10), "metadata": map[string]any{"long": strings.Repeat("ö", 50<<10)}, "level": "debug"}),
	}}}}
	status, body := get(t, router(t, store), session("1"), "")
	if status != http.StatusOK || strings.Contains(body, "<script>") || strings.Contains(body, "<img src=x") {
		t.Errorf("%d %s", status, body)
	}
	text := html.UnescapeString(body)
	for _, want := range []string{hostile, "2026-11-21T09:30:00.25Z", `<span class="level">error</span>`, "Shop 1", "this is its beginning"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(body) > 64<<10 || strings.Contains(body, "\ufffd…") {
		t.Errorf("the page has %d bytes", len(body))
	}
}

// The filters are those of the API and keep their values.
func TestFilters(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Next: &ingest.Position{After: &ingest.Place{}}}}}
	handler := router(t, store)
	status, body := get(t, handler, session("1"), "?project=prj_1&environment=prod&level=warn&level=error&q=Checkout+failed")
	if status != http.StatusOK || store.as != "org_1" || store.asked.Project != "prj_1" || store.asked.Environment != "prod" || store.asked.Query.String() != "Checkout failed" || store.asked.Limit != 50 || store.asked.MaxBytes != 2<<20 {
		t.Errorf("%d, asked as %q for %+v", status, store.as, store.asked)
	}
	for _, want := range []string{`value="prj_1" selected`, `value="warn" checked`, `value="error" checked`, `value="Checkout failed"`, `value="prod"`, "Search on"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, `value="info" checked`) {
		t.Error("a level is checked that was not asked for")
	}
	if status, body := get(t, handler, session("1"), "?from=2026-11-21T09:30:15Z&to=yesterday"); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, `id="fault-to"`) || !strings.Contains(body, `value="2026-11-21T09:30:15"`) {
		t.Errorf("a time that is none: %d %s", status, body)
	}
	if status, body := get(t, handler, session("1"), "?project=&q=%21%3F"); status != http.StatusUnprocessableEntity || !strings.Contains(body, `id="fault-q"`) {
		t.Errorf("words that are none: %d %s", status, body)
	}
	for query, want := range map[string]int{"?project=&q=": 200, "?level=loud": 400, "?cursor=x": 400, "?organization=org_2": 400} {
		if status, _ := get(t, handler, session("1"), query); status != want {
			t.Errorf("%s: %d, want %d", query, status, want)
		}
	}
}

// Browsers send times without a zone; they are in UTC. The next page
// keeps them and the other filters.
func TestTimeRange(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Next: &ingest.Position{After: &ingest.Place{}}}}}
	status, body := get(t, router(t, store), session("1"), "?q=paid&from=2026-11-21T09:30&to=2026-11-21T09:30:15.25")
	from, _ := ingest.ParseInstant([]byte("2026-11-21T09:30:00Z"))
	to, _ := ingest.ParseInstant([]byte("2026-11-21T09:30:15.25Z"))
	if status != http.StatusOK || store.asked.From == nil || *store.asked.From != from || store.asked.To == nil || *store.asked.To != to {
		t.Fatalf("%d, asked for %+v", status, store.asked)
	}
	for _, want := range []string{
		`value="2026-11-21T09:30"`, `value="2026-11-21T09:30:15.25"`, `from=2026-11-21T09%3A30%3A00Z&q=paid&to=2026-11-21T09%3A30%3A15.25Z`,
		`<option value="" selected>The time below`,
	} {
		if !strings.Contains(html.UnescapeString(body), want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
}

// An entry of a wrong clock does not stay on top, unless a search has an end.
func TestTheFutureIsHidden(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, nil)}}}}
	handler := router(t, store)
	_, body := get(t, handler, session("1"), "?q=checkout")
	if want := ingest.InstantOf(time.Date(2026, 11, 21, 12, 1, 30, 0, time.UTC)); store.asked.To == nil || *store.asked.To != want ||
		!strings.Contains(html.UnescapeString(body), `href="/console/logs?from=2026-11-21T11%3A00%3A30Z&q=checkout&to=9999-12-31T23%3A59%3A59.999999999Z">with the future`) {
		t.Errorf("asked up to %v: %s", store.asked.To, body)
	}
	for query, asked := range map[string]string{"?to=9999-12-31T23:59:59Z": "9999-12-31T23:59:59Z", "?order=asc": ""} {
		if _, body := get(t, handler, session("1"), query); strings.Contains(body, "with the future") || store.asked.To != nil && store.asked.To.String() != asked {
			t.Errorf("%s: asked up to %v, %s", query, store.asked.To, body)
		}
	}
}

// The time up to now is the last hour, or what the reader chooses.
func TestTheLastHour(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Next: &ingest.Position{After: &ingest.Place{}}}}}
	handler := router(t, store)
	for query, from := range map[string]string{
		"": "2026-11-21T11:00:30Z", "?last=": "2026-11-21T11:00:30Z", "?last=15m&from=&to=": "2026-11-21T11:45:30Z", "?last=7d": "2026-11-14T12:00:30Z", "?last=any": "",
		"?last=1h&from=2026-11-21T01:00": "2026-11-21T01:00:00Z", "?last=1h&to=2026-11-21T01:00": "",
	} {
		status, body := get(t, handler, session("1"), query)
		if got := store.asked.From; status != http.StatusOK || got == nil && from != "" || got != nil && got.String() != from {
			t.Errorf("%s: %d, from %v, want %s", query, status, got, from)
		}
		next := html.UnescapeString(body[strings.Index(body, "Search on")-300:])
		if from != "" && !strings.Contains(next, "from="+url.QueryEscape(from)) || query == "?last=any" && !strings.Contains(next, "last=any") {
			t.Errorf("%s: the next page is not of the same time: %.300s", query, next)
		}
	}
	if status, _ := get(t, handler, session("1"), "?last=year"); status != http.StatusBadRequest {
		t.Errorf("an unknown time: %d", status)
	}
}

// A value leads to the entries with it and to those without it, whatever
// the search before; a field becomes a column and is none again.
func TestValuesLeadOn(t *testing.T) {
	of := func(service string) ingest.Found {
		return entry(t, map[string]any{"message": "checkout failed", "metadata": map[string]any{"service": service, "user": map[string]any{"id": 7}, "trace_id": "t 1"}, "error": map[string]any{"type": "E", "stack_trace": []string{"a", "b"}}})
	}
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{of("api"), of("api"), of("web")}}}}
	handler := router(t, store)
	status, body := get(t, handler, session("1"), "?q=failed+OR+x&field=user.id&last=24h")
	text := html.UnescapeString(body)
	for _, want := range []string{
		`<strong>3</strong> entries · <a href="/console/logs?field=user.id&from=2026-11-20T12%3A00%3A30Z&q=%28failed+OR+x%29+%28level%3Aerror+OR+level%3Afatal%29">3 errors</a>`,
		`q=%28failed+OR+x%29+service%3Aapi" title="Only these"><bdi>api</bdi></a>`, `q=%28failed+OR+x%29+-service%3Aapi" title="Without these"`,
		`<span class="number">2</span>`, `checkout <mark>failed</mark>`, `<span>user.id</span>`, `<span class="column"><bdi>7</bdi></span>`,
		`<button form="refine" name="add" value="metadata.user.id:7"`, `<button form="refine" name="add" value="-metadata.user.id:7"`,
		`<input type="hidden" name="field" value="user.id">`, "<pre class=\"wrap\">a\nb</pre>", `/console/errors?project=prj_1&q=%22E%22&status=all`, `q=trace_id%3A%22t+1%22`,
		`<rect class="error"`, `title="Remove the column"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%d, the page lacks %s:\n%s", status, want, text)
		}
	}
	answer := ask(t, handler, session("1"), "/console/logs?q=a+OR+b&add=-service:api&last=7d&cursor=x")
	if got := ask(t, handler, session("1"), "/console/logs?q=x&add=y+OR+z").Header().Get("Location"); got != "/console/logs?q=x+%28y+OR+z%29" {
		t.Errorf("alternatives are added as %s", got)
	}
	if got := ask(t, handler, session("1"), "/console/logs?q=foo%22&add=y").Header().Get("Location"); got != "/console/logs?q=foo%22" {
		t.Errorf("a search that can't be read becomes %s", got)
	}
	if got := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther || got != "/console/logs?last=7d&q=%28a+OR+b%29+-service%3Aapi" {
		t.Errorf("a term is added by %d %s", answer.Code, got)
	}
	for query, want := range map[string]int{"?field=a*": 400, "?field=a&field=b&field=c&field=d&field=e": 400, "?field=a&field=b&field=c&field=d&field=": 200, "?field=&field=a": 200} {
		if status, _ := get(t, handler, session("1"), query); status != want {
			t.Errorf("%s: %d, want %d", query, status, want)
		}
	}
}

// What a page shows the beginning of can be had as a file.
func TestDownload(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, map[string]any{"message": "=1+1, \"quoted\""})}}}}
	handler := router(t, store)
	_, page := get(t, handler, session("1"), "?q=a&last=24h&field=b")
	for name, path := range map[string]string{"logs.csv": "/console/logs/csv", "logs.ndjson": "/console/logs/ndjson"} {
		if want := `href="` + path + `?field=b&from=2026-11-20T12%3A00%3A30Z&q=a&to=2026-11-21T12%3A01%3A30Z" download`; !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("the page lacks %s", want)
		}
		answer := ask(t, handler, session("1"), path+"?q=a&last=24h&field=b")
		text := string(store.found["org_1"].Found[0].Text)
		want := text + "\n"
		if name == "logs.csv" {
			want = "timestamp,received_at,level,environment,project,message,entry\n" +
				`2026-11-21T09:30:00.25Z,0001-01-01T00:00:00Z,error,prod,prj_1,"'=1+1, ""quoted""","` + strings.ReplaceAll(text, `"`, `""`) + "\"\n"
		}
		if answer.Code != http.StatusOK || answer.Body.String() != want || answer.Header().Get("Content-Disposition") != `attachment; filename="`+name+`"` ||
			store.asked.Query.String() != "a" || store.asked.From == nil {
			t.Errorf("%s: %d %v\n%s\nwant\n%s", name, answer.Code, answer.Header(), answer.Body, want)
		}
		if answer := ask(t, handler, session("2"), path+"?project=prj_1"); answer.Code != http.StatusNotFound || answer.Header().Get("Content-Disposition") != "" {
			t.Errorf("%s of a foreign project: %d %v", name, answer.Code, answer.Header())
		}
		if answer := ask(t, handler, session("1"), path+"?q=!"); answer.Code != http.StatusBadRequest {
			t.Errorf("%s of a faulty search: %d", name, answer.Code)
		}
	}
}

// Members see their organization's entries and projects; a foreign
// project looks missing.
func TestIsolation(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, nil)}}}}
	handler := router(t, store)
	if status, body := get(t, handler, session("2"), ""); status != http.StatusOK || store.as != "org_2" || strings.Contains(body, "checkout failed") || strings.Contains(body, "Shop 1") {
		t.Errorf("%d as %q: %s", status, store.as, body)
	}
	foreign, foreignBody := get(t, handler, session("2"), "?project=prj_1")
	unknown, unknownBody := get(t, handler, session("2"), "?project=prj_9")
	if foreign != http.StatusNotFound || foreign != unknown || strings.ReplaceAll(foreignBody, "prj_1", "prj_9") != unknownBody {
		t.Errorf("foreign: %d %s\nunknown: %d %s", foreign, foreignBody, unknown, unknownBody)
	}
	for name, secret := range map[string]string{"nobody": "", "a stranger": session("f"), "an API key": "weir_" + strings.Repeat("1", 48)} {
		if status, body := get(t, handler, secret, ""); status != http.StatusSeeOther || strings.Contains(body, "checkout") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// A page without entries shows how to get some.
func TestEmptyPagesTeach(t *testing.T) {
	handler := router(t, &shelf{})
	for query, want := range map[string]string{"": "No logs yet", "?q=checkout": "No entry matches"} {
		if status, body := get(t, handler, session("1"), query); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
	old := &timed{shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, nil)}}}}}
	_, body := get(t, router(t, old), session("1"), "")
	if want := `href="/console/logs?from=2026-11-21T08%3A30%3A00.25Z&to=2026-11-21T09%3A30%3A01.25Z">Show the newest entries`; !strings.Contains(html.UnescapeString(body), want) {
		t.Errorf("the page does not lead to the newest entry: %s", body)
	}
}

// timed finds nothing where the search has a beginning.
type timed struct{ shelf }

func (s *timed) Page(ctx context.Context, organization string, search ingest.Search) (*searches.Answer, error) {
	if search.From != nil {
		return &searches.Answer{}, nil
	}
	return s.shelf.Page(ctx, organization, search)
}

// The page's assets are served.
func TestAssets(t *testing.T) {
	handler := router(t, &shelf{})
	_, page := get(t, handler, session("1"), "")
	style := regexp.MustCompile(`/console/assets/[^"]+\.css`).FindString(page)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/"+strings.TrimPrefix(style, "/"), nil))
	if answer.Code != http.StatusOK || style == "" {
		t.Errorf("the style %q: %d", style, answer.Code)
	}
}

// What comes is sent as the rows that the page has, in a form of which a
// script can make no markup but theirs.
func TestLiveRows(t *testing.T) {
	found := entry(t, map[string]any{"message": hostile})
	routes, hub := liveRouter(t, &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{found}}}})
	go func() {
		for t.Context().Err() == nil { // until there is a viewer
			_ = hub.Offer(tails.Record{Organization: "org_1", Project: "prj_1", Entries: 1}, func(each func(ingest.Stored)) error {
				each(found.Stored)
				return nil
			})
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, page := get(t, routes, session("1"), "?q=checkout&level=error&from=2026-11-21T09:30&cursor=")
	if !strings.Contains(page, `data-live="/console/logs/tail?level=error&amp;q=checkout"`) || !strings.Contains(page, "data-live-rows") {
		t.Errorf("the page offers no rows as they come: %s", page)
	}
	status, events := get(t, routes, session("1"), "/tail")
	_, data, _ := strings.Cut(events, "event: entry\ndata: ")
	data, _, _ = strings.Cut(data, "\n")
	var rows []any
	if err := json.Unmarshal([]byte(data), &rows); err != nil || status != http.StatusOK || len(rows) != 1 {
		t.Fatalf("%d %v: %s", status, err, events)
	}
	if row := fmt.Sprint(rows[0]); !strings.Contains(row, hostile) || !strings.Contains(page, "<"+rows[0].([]any)[0].(string)) {
		t.Errorf("the row is %s", row)
	}
	if status, _ := get(t, routes, session("1"), "/tail?project=prj_2"); status != http.StatusNotFound {
		t.Errorf("a foreign project is answered %d", status)
	}
}

// Patterns stand in place of entries, and lead to theirs.
func TestPatterns(t *testing.T) {
	at := func(seconds int64, level, message string) ingest.Found {
		found := entry(t, map[string]any{"message": message, "level": level})
		found.Time = ingest.InstantOf(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)).Plus(-seconds)
		return found
	}
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{
		at(10, "info", "took 5 ms"), at(20, "warn", "took 900 ms"), at(30, "error", hostile), at(7200, "info", "took 7 ms"),
	}}}}
	handler := router(t, store)
	status, body := get(t, handler, session("1"), "?view=patterns&q=NOT+absent")
	for _, want := range []string{
		`<a href="/console/logs?from=2026-11-21T11%3A00%3A30Z&amp;q=NOT&#43;absent&#43;%22took%22&#43;%22ms%22"><bdi>took <var>&lt;num&gt;</var> ms</bdi></a>`,
		`<span class="hint">1 warn · 1 info</span>`, `<td class="number" data-label="Share">66.7 %</td>`, `<span class="badge accent">new</span>`, "compared with 1 entries",
		`<input type="hidden" name="view" value="patterns">`, `aria-current="page">Patterns</a>`, `last=24h&amp;new=1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%d, the page lacks %s:\n%s", status, want, body)
		}
	}
	if strings.Contains(body, "<script>alert") {
		t.Error("a pattern is markup")
	}
	_, body = get(t, handler, session("1"), "?view=patterns&new=1")
	if strings.Contains(body, "took") || !strings.Contains(body, "alert") {
		t.Errorf("patterns that are not new are shown: %s", body)
	}
	for query, want := range map[string]string{
		"?view=patterns&new=1&last=15m&q=ms": "No new patterns", "?view=patterns&last=any": "took <var>", "?view=patterns&from=2020-01-01T00:00&to=2020-01-02T00:00": "No entr", "?view=patterns&q=!": "fault-q",
	} {
		if _, body := get(t, handler, session("1"), query); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s: %s", query, want, body)
		}
	}
}

// The chart is by the field that is chosen, and what is rare is one part.
func TestChartByAField(t *testing.T) {
	var list []ingest.Found
	for i := range 20 {
		found := entry(t, map[string]any{"metadata": map[string]any{"service": fmt.Sprint("s", min(i, 9))}})
		found.Time = ingest.InstantOf(time.Date(2026, 11, 21, 11, 30, i, 0, time.UTC))
		list = append(list, found)
	}
	handler := router(t, &shelf{found: map[string]ingest.Result{"org_1": {Found: list}}})
	_, body := get(t, handler, session("1"), "")
	if want := `href="/console/logs?chart=service&amp;from=2026-11-21T11%3A00%3A30Z" title="Divide the chart by it"`; !strings.Contains(body, want) {
		t.Errorf("the page lacks %s: %s", want, body)
	}
	_, body = get(t, handler, session("1"), "?chart=service")
	for _, want := range []string{
		`<rect class="series-0"`, `<span class="swatch series-0" aria-hidden="true"></span> <bdi>s9</bdi>`, `20 entries, 11 s9, 1 s0, 1 s1, 1 s2, 1 s3, 1 s4, 4 others or none`,
		`<input type="hidden" name="chart" value="service">`, `By level</a>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s: %s", want, body)
		}
	}
	if status, _ := get(t, handler, session("1"), "?chart=a*"); status != http.StatusBadRequest {
		t.Errorf("a field that is none: %d", status)
	}
}
