package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A developer sets an alert, changes, tests, mutes and deletes it; a
// viewer only sees it.
func TestAlertPages(t *testing.T) {
	directory := identity.NewDirectory()
	for kind, value := range map[string]string{contract.TypeWebhookChanged: groupingtest.Webhook,
		contract.TypeMemberAdded: `{"organization":"acme","member":"mem_1","name":"Me","role":"developer"}`} {
		testenv.Must(t, directory.Apply(kind, []byte(value)))
	}
	service := groupingtest.With(t, func(config *groups.Config) { config.Projects = directory })
	pages := pagesWith(t, service, directory, "developer")
	shows(t, pages, "/console/errors", `href="/console/errors/alerts"`)
	shows(t, pages, "/console/errors/alerts", "There are no alerts yet")
	shows(t, pages, "/console/errors/alerts/new?project=shop", `<option value="shop" selected>`, `name="triggers" value="new" checked`, `name="triggers" value="unignored" checked`)
	shows(t, pages, "/console/errors/alerts/new?project=shop", `href="/console/logs/searches/new?project=shop"`)
	form := url.Values{"project": {"shop"}, "name": {"Shop"}, "triggers": {"new", "many", "users"}, "new_from": {"2"}, "count": {"100"}, "per": {"hour"},
		"users": {"50"}, "users_per": {"day"},
		"environments": {"prod, staging"}, "q": {"pay card assigned:me"}, "gap_seconds": {"300"}, "hours/from": {"08:00"}, "hours/to": {"18:00"},
		"hours/time_zone": {"Europe/Berlin"}, "days": {"1", "5"}, "levels": {"error"}, "mail": {"developer", "member:mem_1"}, "webhooks": {"whk_1"}, "key": {"once"}}
	wrong := maps.Clone(form)
	wrong.Set("gap_seconds", "1")
	wrong.Del("key")
	if status, body := post(pages, "/console/errors/alerts/new", wrong); status != 422 || !strings.Contains(body, `id="fault-gap_seconds"`) {
		t.Errorf("a wrong rule: %d %s", status, body)
	}
	wrong.Set("gap_seconds", "300")
	wrong.Set("q", "is:resolved")
	if status, body := post(pages, "/console/errors/alerts/new", wrong); status != 422 || !strings.Contains(body, `id="fault-q"`) ||
		!strings.Contains(body, `value="is:resolved"`) || !strings.Contains(body, `value="whk_1" checked`) {
		t.Errorf("a search that alerts don't know: %d %s", status, body)
	}
	status, path := post(pages, "/console/errors/alerts/new", form)
	if status != 303 || !strings.HasPrefix(path, "/console/errors/alerts/alr_") {
		t.Fatalf("%d %s", status, path)
	}
	if status, again := post(pages, "/console/errors/alerts/new", form); status != 303 || again != path {
		t.Errorf("sent again: %d %s, not %s", status, again, path)
	}
	shows(t, pages, path, "of errors that come 100 times within one hour, of errors that affect 50 users within one day; in prod, staging; of level error; with pay card assigned:Me; from 08:00 to 18:00 in Europe/Berlin on Monday, Friday",
		`name="hours/from" type="time" value="08:00"`, `name="mail" value="developer" checked`, "Nothing yet.", `name="webhooks" value="whk_1" checked`, "hooks.example, 1 member by mail")
	form.Set("version", "1")
	form.Del("key")
	form.Del("days")
	if status, leads := post(pages, path, form); status != 303 || leads != path {
		t.Errorf("changed: %d %s", status, leads)
	}
	if status, body := post(pages, path, form); status != 409 || !strings.Contains(body, "Somebody else has changed this alert") {
		t.Errorf("the second: %d %s", status, body)
	}
	for action, does := range map[string][2]string{"mute": {"3600", "Unmute"}, "test": {"", "a test was sent"}} {
		if status, leads := post(pages, path+"/"+action, url.Values{"for": {does[0]}}); status != 303 || leads != path {
			t.Errorf("%s: %d %s", action, status, leads)
		}
		shows(t, pages, path, does[1])
	}
	shows(t, pages, "/console/errors/alerts", `href="`+path+`"`, "muted", "hooks.example, 1 member by mail")
	form.Set("version", versionField.FindStringSubmatch(pageOf(t, pages, path))[1])
	form.Del("mail")
	form.Set("webhooks", "whk_gone")
	if status, body := post(pages, path, form); status != 422 || !strings.Contains(body, `whk_gone&#34; is none of`) {
		t.Errorf("an unknown webhook: %d %s", status, body)
	}
	form.Del("webhooks")
	if status, leads := post(pages, path, form); status != 303 || leads != path {
		t.Errorf("told to nobody: %d %s", status, leads)
	}
	shows(t, pages, path, "This alert reaches nobody", "now there are none")
	shows(t, pages, "/console/errors/alerts", `<span class="badge fault">nobody</span>`)
	_, page := get(pages, path)
	if status, leads := post(pages, path+"/delete", url.Values{"version": versionField.FindStringSubmatch(page)[1:]}); status != 303 || leads != "/console/errors/alerts" {
		t.Errorf("deleted: %d %s", status, leads)
	}
	viewer := pagesFor(t, "viewer")
	if status, _ := post(viewer, "/console/errors/alerts/new", form); status != 403 {
		t.Errorf("a viewer: %d", status)
	}
}

// A form names a member by a name that leads back to that member, and else by id.
func TestAlertFormsNameMembers(t *testing.T) {
	for name, want := range map[string]string{
		"Ada": "assigned:Ada", "nobody": "assigned:mem_1", "me": "assigned:mem_1", `A&#34;B`: "assigned:A&amp;#34;B", `A\"B`: "assigned:mem_1", "Bob": "assigned:mem_1",
	} {
		directory := identity.NewDirectory()
		for id, of := range map[string]string{"mem_1": name, "mem_2": "Bob"} {
			testenv.Must(t, directory.Apply(contract.TypeMemberAdded, []byte(`{"organization":"acme","member":"`+id+`","name":"`+of+`","role":"developer"}`)))
		}
		pages := pagesWith(t, groupingtest.With(t, func(config *groups.Config) { config.Projects = directory }), directory, "developer")
		status, path := post(pages, "/console/errors/alerts/new", url.Values{"project": {"shop"}, "name": {"Shop"}, "triggers": {"new"}, "new_from": {"2"},
			"q": {"assigned:mem_1"}, "gap_seconds": {"300"}})
		if status != 303 {
			t.Fatalf("%s: %d %s", name, status, path)
		}
		shows(t, pages, path, `value="`+want+`"`)
	}
}

func pageOf(t *testing.T, pages http.Handler, path string) string {
	t.Helper()
	_, page := get(pages, path)
	return page
}
