package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
)

const (
	firstID  = "00000000000000000000000000000000-0"
	entryURL = "/entry?project=prj_1&time=2026-11-21T09:30:00.25Z&id="
)

// entryOf is the part about an entry with metadata.
func entryOf(t *testing.T, members map[string]any) string {
	t.Helper()
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, members)}}}}
	status, body := get(t, router(t, store), session("1"), entryURL+firstID)
	if status != http.StatusOK || strings.Contains(body, "<html") || strings.Contains(body, "<script") {
		t.Errorf("%d %s", status, body)
	}
	return body
}

// The entry of a sample leads to those around it of its trace, request and host.
func TestEntriesAround(t *testing.T) {
	const link = `<a href="/console/logs\?([^"]+)">([^<]+)</a>`
	for name, c := range map[string]struct {
		metadata map[string]any
		want     []string // text, query, project
	}{
		"nothing":        {map[string]any{"release": "1"}, nil},
		"trace":          {map[string]any{"trace_id": "ab01"}, []string{"on the same trace", "metadata.trace_id:ab01", ""}},
		"request":        {map[string]any{"request_id": 7}, []string{"of the same request", "metadata.request_id:7", "prj_1"}},
		"host":           {map[string]any{"host": "web 1"}, []string{"on the same host", `metadata.host:"web 1"`, "prj_1"}},
		"host by name":   {map[string]any{"host": map[string]any{"name": "web-1"}}, []string{"on the same host", "metadata.host.name:web-1", "prj_1"}},
		"host of OTLP":   {map[string]any{"host.name": "web-1", "host": "x"}, []string{"on the same host", "metadata.host.name:web-1", "prj_1"}},
		"several":        {map[string]any{"host": "a", "trace_id": "b"}, []string{"on the same trace", "metadata.trace_id:b", "", "on the same host", "metadata.host:a", "prj_1"}},
		"empty":          {map[string]any{"trace_id": ""}, nil},
		"hostile":        {map[string]any{"trace_id": hostile}, []string{"on the same trace", `metadata.trace_id:"\"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}"`, ""}},
		"too long":       {map[string]any{"trace_id": strings.Repeat("x", 5000)}, nil},
		"another's name": {map[string]any{"trace": map[string]any{"trace_id": "b"}}, nil},
	} {
		body := entryOf(t, map[string]any{"metadata": c.metadata})
		var got []string
		for _, found := range regexp.MustCompile(link).FindAllStringSubmatch(body, -1) {
			query, _ := url.ParseQuery(html.UnescapeString(found[1]))
			got = append(got, found[2], query.Get("q"), query.Get("project"))
			if query.Get("from") != "2026-11-21T09:25:00.25Z" || query.Get("to") != "2026-11-21T09:35:00.25Z" || query.Get("order") != "asc" {
				t.Errorf("%s: %v", name, query)
			}
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") || (c.want == nil) != strings.Contains(body, "has no <code>trace_id</code>") {
			t.Errorf("%s: %q, want %q in %s", name, got, c.want, body)
		}
	}
}

// A neighbourhood has entries before and after one, which share its trace.
type neighbourhood struct {
	shelf
	before, after []ingest.Found
	asked         []ingest.Search
}

func (n *neighbourhood) Page(ctx context.Context, organization string, search ingest.Search) (*searches.Answer, error) {
	switch n.asked = append(n.asked, search); {
	case len(n.asked) == 1: // for the entry itself
		return n.shelf.Page(ctx, organization, search)
	case search.OldestFirst:
		return &searches.Answer{Result: ingest.Result{Found: n.after}}, nil
	}
	return &searches.Answer{Result: ingest.Result{Found: n.before}}, nil
}

// Some entries of the same trace are shown before and after that of the sample, in their order.
func TestRowsAround(t *testing.T) {
	of := func(message string) ingest.Found {
		return entry(t, map[string]any{"message": message, "metadata": map[string]any{"trace_id": "ab01", "service": "cart"}})
	}
	store := &neighbourhood{
		shelf:  shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{of("it fails")}}}},
		before: []ingest.Found{of("just before"), of("long before")}, after: []ingest.Found{of("<b>after</b>")},
	}
	status, body := get(t, router(t, store), session("1"), entryURL+firstID)
	rows := regexp.MustCompile(`(?s)<li class="error"( aria-current="true")?>.*?class="message"><bdi>(.*?)</bdi>`).FindAllStringSubmatch(body, -1)
	var got []string
	for _, row := range rows {
		got = append(got, row[1]+row[2])
	}
	if want := `long before|just before| aria-current="true"it fails|&lt;b&gt;after&lt;/b&gt;`; status != http.StatusOK || strings.Join(got, "|") != want {
		t.Errorf("%d %q, want %s in %s", status, got, want, body)
	}
	for _, search := range store.asked[1:] {
		if search.Query.String() != "metadata.trace_id:ab01" || search.Project != "" || search.Limit != 5 || search.Start.After == nil {
			t.Errorf("asked for %+v", search)
		}
	}
}

// The trace of an error is shown as it was sent, to the byte, and of a very long one its beginning.
func TestRawTrace(t *testing.T) {
	raw := regexp.MustCompile(`(?s)<pre class="wrap">\n(.*)</pre>`)
	long := strings.Repeat("é", 40<<10)
	for name, c := range map[string]struct {
		trace any
		want  string
	}{
		"lines":        {[]string{"Error: x", "", "  at a (/srv/a.js:1:1) ", "\tat b"}, "Error: x\n\n  at a (/srv/a.js:1:1) \n\tat b"},
		"one with all": {[]string{"\nfirst\nsecond\n"}, "\nfirst\nsecond\n"},
		"hostile":      {[]string{"</pre>" + hostile, `<div data-part="entry">`}, "</pre>" + hostile + "\n" + `<div data-part="entry">`},
		"long":         {[]string{long}, long[:64<<10] + "…"},
		"a text":       {"first\nsecond", "first\nsecond"},
		"with others":  {[]any{"first", 7, []string{"x"}, "second"}, "first\nsecond"},
		"an object":    {map[string]any{"a": "b"}, ""},
		"none":         {nil, ""},
		"empty":        {[]string{}, ""},
	} {
		body := entryOf(t, map[string]any{"error": map[string]any{"type": "E", "stack_trace": c.trace, "Stack_Trace": []string{"another"}}})
		shown := ""
		if found := raw.FindStringSubmatch(body); found != nil {
			shown = html.UnescapeString(found[1])
		}
		if shown != c.want || strings.Contains(body, "This is its beginning") != (name == "long") || strings.Contains(body, "Raw trace") != (c.want != "") {
			t.Errorf("%s: %.200q, want %.200q in %.1000s", name, shown, c.want, body)
		}
	}
	if body := entryOf(t, nil); strings.Contains(body, "Raw trace") {
		t.Errorf("of no error: %s", body)
	}
}

// The metadata of an entry is shown value by value, folded where it is long.
func TestMetadata(t *testing.T) {
	many := map[string]any{}
	for i := range 300 {
		many[fmt.Sprint("key", i)] = i
	}
	const unfolded = "<details open><summary>Metadata"
	for name, c := range map[string]struct {
		metadata any
		want     []string
		open     bool
	}{
		"few":     {map[string]any{"user": map[string]any{"id": 42}, "tags": []string{"a"}}, []string{"metadata.user.id</bdi>", "<bdi>42<", ">2 values<", "metadata.tags<"}, true},
		"one":     {map[string]any{"ok": true}, []string{">1 value<", "<bdi>true<"}, true},
		"many":    {many, []string{">200 values<", "This is its beginning"}, false},
		"long":    {map[string]any{"body": strings.Repeat("x", 300)}, []string{strings.Repeat("x", 300)}, false},
		"lines":   {map[string]any{"query": "\nselect 1\n"}, []string{"<pre class=\"wrap\">\n\nselect 1\n</pre>"}, false},
		"hostile": {map[string]any{hostile: hostile}, []string{"metadata.&#34;&gt;&lt;script&gt;", "<bdi>&#34;&gt;&lt;script&gt;"}, true},
		"none":    {map[string]any{}, nil, false},
	} {
		body := entryOf(t, map[string]any{"metadata": c.metadata, "error": map[string]any{"stack_trace": []string{strings.Repeat("line ", 10_000)}}})
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %.200q in %.1000s", name, want, body)
			}
		}
		if strings.Contains(body, unfolded) != c.open || strings.Contains(body, "<summary>Metadata") != (c.want != nil) {
			t.Errorf("%s: unfolded %t: %.1000s", name, !c.open, body)
		}
	}
}

// An aheadShelf has an entry of a clock that is ahead.
type aheadShelf struct {
	*shelf
	asked []ingest.Search
}

func (s *aheadShelf) Page(ctx context.Context, organization string, search ingest.Search) (*searches.Answer, error) {
	if s.asked = append(s.asked, search); len(s.asked) == 1 {
		return &searches.Answer{}, nil
	}
	return s.shelf.Page(ctx, organization, search)
}

// An entry is looked for where it is, and then among the errors after it, as its sample has
// the time of its acceptance where that is earlier.
func TestEntrySearch(t *testing.T) {
	store := &aheadShelf{shelf: &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, nil)}}}}}
	status, body := get(t, router(t, store), session("1"), strings.Replace(entryURL, "00.25Z", "00.9999995Z", 1)+"0000000000000000000000000000000a-3")
	if status != http.StatusNotFound || len(store.asked) != 2 {
		t.Fatalf("another entry: %d %s, %v", status, body, store.asked)
	}
	exact, ahead := store.asked[0], store.asked[1]
	if after := exact.Start.After; after.Batch[15] != 10 || after.Index != 2 || after.Time != *exact.From || exact.To.String() != "2026-11-21T09:30:01.0000005Z" || !exact.OldestFirst {
		t.Errorf("%+v", exact)
	}
	if ahead.To.String() != "2026-11-21T09:40:00.9999995Z" || ahead.Query.String() != "exists:error" || ahead.Project != "prj_1" {
		t.Errorf("%+v", ahead)
	}
	store.asked = nil
	if status, body := get(t, router(t, store), session("1"), entryURL+firstID); status != http.StatusOK || len(store.asked) != 2 {
		t.Errorf("of a clock ahead: %d %s", status, body)
	}
	for query, want := range map[string]int{
		entryURL + "0": 404, entryURL + "zz": 404, entryURL + "00-0": 404, entryURL + firstID + "x": 404, "/entry?project=prj_1&id=" + firstID: 400,
		strings.Replace(entryURL, "prj_1", "prj_2", 1) + firstID: 404,
	} {
		if status, body := get(t, router(t, store), session("1"), query); status != want {
			t.Errorf("%s: %d, want %d: %s", query, status, want, body)
		}
	}
	if status, _ := get(t, router(t, store), session("2"), entryURL+firstID); status != http.StatusNotFound {
		t.Errorf("of others: %d", status)
	}
}

// Whoever may read the page gets entries as the API has them, and nobody else.
func TestEntriesForTheGateway(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, map[string]any{"release": "1"})}}}}
	status, body := get(t, router(t, store), session("1"), "/entries?project=prj_1&limit=5")
	if status != http.StatusOK || !strings.HasPrefix(body, `{"items":[{"id":"`+firstID+`"`) || !strings.Contains(body, `"next_cursor":null`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get(t, router(t, store), "", "/entries?project=prj_1"); status == http.StatusOK || strings.Contains(body, firstID) {
		t.Errorf("without a session: %d %s", status, body)
	}
}
