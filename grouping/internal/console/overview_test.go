package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// The overview of a project has its unresolved groups, the newest first; none of others.
func TestOverview(t *testing.T) {
	pages := newPages(t)
	status, body := get(pages, "/console/errors/overview?project=shop")
	if status != http.StatusOK || strings.Contains(body, "<html") {
		t.Errorf("%d %s", status, body)
	}
	for _, want := range []string{`<span class="figure">2</span> unresolved`, `href="/console/errors?project=shop"`, "AlphaError", "BetaError", "2 ×"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if alpha, beta := strings.Index(body, "AlphaError"), strings.Index(body, "BetaError"); alpha < beta {
		t.Errorf("AlphaError, which came first, is shown first: %s", body)
	}
	for _, query := range []string{"", "?project=lair"} {
		if status, body := get(pages, "/console/errors/overview"+query); status != http.StatusNotFound {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
}
