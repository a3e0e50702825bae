package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
)

// A developer saves rules, and is told what is wrong with them; a viewer only reads. All else is the page of
// both modules, which ingest tests.
func TestRulesPage(t *testing.T) {
	pages := pagesFor(t, "developer")
	const path = "/console/errors/rules"
	shows(t, pages, "/console/errors?status=all", `href="/console/errors/rules"`)
	form := url.Values{"project": {"shop"}, "version": {"0"}, "rules": {"own path:a\nscrub /(/"}, "note": {"because"}, "do": {"save"}}
	if status, body := post(pages, path, form); status != 422 || !strings.Contains(body, "Line 2, character 8") || !strings.Contains(body, "scrub /(/") {
		t.Errorf("wrong: %d %s", status, body)
	}
	form.Set("rules", "# <people>\r\nscrub email")
	for range 2 {
		if status, leads := post(pages, path, form); status != 303 || leads != path+"?project=shop" {
			t.Fatalf("saved: %d %s", status, leads)
		}
	}
	shows(t, pages, path, "# &lt;people&gt;\nscrub email", "because", "you", "in force", "What a rule looks like", `name="version" value="1"`)
	form.Set("rules", "")
	if status, body := post(pages, path, form); status != 409 || !strings.Contains(body, "Somebody has saved version 1 meanwhile") {
		t.Errorf("the second: %d %s", status, body)
	}
	viewer := pagesFor(t, "viewer")
	if status, _ := post(viewer, path, form); status != 403 {
		t.Errorf("a viewer: %d", status)
	}
	shows(t, viewer, path, "Your role may not set any")
}

// The page shows which groups would become one, before anything is saved.
func TestRulesPagePreviews(t *testing.T) {
	service := groupingtest.With(t, func(config *groups.Config) {
		config.Clock = func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
	})
	pages := pagesAs(t, service, "developer")
	form := url.Values{"project": {"shop"}, "version": {"0"}, "rules": {`same "All <kinds>" type:*Error`}, "do": {"preview"}}
	status, body := post(pages, "/console/errors/rules", form)
	for _, text := range []string{"become one", "All &lt;kinds&gt;", "AlphaError", "BetaError", "entry0", `by <bdi>same &#34;All &lt;kinds&gt;&#34;`, "Nothing is saved yet"} {
		if status != 200 || !strings.Contains(body, text) {
			t.Errorf("%d without %q: %s", status, text, body)
		}
	}
	form.Set("rules", "group by metadata.tenant where type:Alpha*")
	if _, body := post(pages, "/console/errors/rules", form); !strings.Contains(body, "What becomes of 2 other samples is not known") || !strings.Contains(body, "Nothing changes for errors like these") {
		t.Error(body)
	}
	if status, page := get(pages, "/console/errors/rules"); status != 200 || !strings.Contains(page, `value="0"`) {
		t.Errorf("it was saved: %s", page)
	}
}
