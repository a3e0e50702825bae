//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// By keyboard only and without scripts, a member lands on the overview of the project,
// and gets from each part to its page. Of a new project it says what to do first.
func TestOverview(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.awaitPage("Checkout")
	overview := "/console/overview?project=" + w.project
	b.repeat("1 unresolved", func() { b.open(overview) })
	b.repeat("info 1", func() { b.open(overview) })
	b.check("the overview")
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for _, part := range []struct{ link, page string }{
		{"3", "Logs"}, {"1 new", "Errors"}, {"TypeError: Cannot read", "TypeError: Cannot read properties of undefined (reading 'total')"},
		{"Plan", "Plan"}, {"All API keys", "API Keys"},
	} {
		b.open(overview)
		b.leave("a", part.link, part.page)
	}
	b.blameless("the overview without scripts")
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})

	second, err := in.api.CreateProject(t.Context(), in.token, w.organization, "Search")
	if err != nil {
		t.Fatal(err)
	}
	b.open("/console")
	b.awaitPage("Projects")
	b.leave("a", "Search", "Search")
	b.check("the overview of a new project")
	b.leave("a", "Create an API key", "Create New API Key")
	if chosen := ask[string](b, `document.querySelector("select[name=project]").value`); chosen != second.ID {
		t.Errorf("the key would be of project %q", chosen)
	}
}
