package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
)

// The overview of a project counts the entries of a day by level, and leads to them.
func TestOverview(t *testing.T) {
	store := &shelf{found: map[string]ingest.Result{"org_1": {Found: []ingest.Found{entry(t, nil), entry(t, map[string]any{"level": "info"}), entry(t, nil)}}}}
	pages := router(t, store)
	status, body := get(t, pages, session("1"), "/overview?project=prj_1")
	if status != http.StatusOK || strings.Contains(body, "<html") {
		t.Errorf("%d %s", status, body)
	}
	for _, want := range []string{`<span class="figure">3</span>`, "/console/logs?last=24h&amp;level=error&amp;project=prj_1", "</span> 2</a>",
		"/console/logs?from=2026-11-21T09%3A30%3A00Z&amp;project=prj_1&amp;to=2026-11-21T10%3A00%3A00Z"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if status, body := get(t, pages, session("2"), "/overview?project=prj_2"); status != http.StatusOK || !strings.Contains(body, `None. <a href="/console/logs?last=any&amp;project=prj_2">`) {
		t.Errorf("of no entries: %d %s", status, body)
	}
	if status, body := get(t, pages, session("2"), "/overview?project=prj_1"); status != http.StatusNotFound {
		t.Errorf("of others: %d %s", status, body)
	}
}
