package console_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
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

// A project that is deleted has no page, and where there is none no rules are kept.
func TestRulesOfNoProject(t *testing.T) {
	projects := identity.NewDirectory()
	pages := pagesWith(t, groupingtest.New(t), projects, "developer")
	deleted, err := json.Marshal(contract.DeletionRequested{Organization: "acme", Project: "shop"})
	testenv.Must(t, err)
	testenv.Must(t, projects.Apply(contract.TypeDeletionRequested, deleted))
	const path = "/console/errors/rules"
	for _, project := range []string{"", "shop"} {
		for _, does := range []string{"save", "preview"} {
			form := url.Values{"project": {project}, "version": {"0"}, "rules": {"scrub email"}, "do": {does}}
			if status, body := post(pages, path, form); status != 404 {
				t.Errorf("%s of project %q: %d %s", does, project, status, body)
			}
		}
	}
	for query, want := range map[string]int{"": 200, "?project=shop": 404, "?version=1": 404, "?project=shop&version=1": 404} {
		if status, body := get(pages, path+query); status != want {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
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
