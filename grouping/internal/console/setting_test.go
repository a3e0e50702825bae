package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var sinceField = regexp.MustCompile(`name="if_since" value="([^"]+)"`)

// A developer sets where metadata has what, and after how many days errors are
// archived; the second of two sees what the first did, and a viewer only reads.
func TestSettingsPage(t *testing.T) {
	pages := pagesFor(t, "developer")
	const path = "/console/errors/settings"
	shows(t, pages, "/console/errors", `href="/console/errors/settings"`, `>Archived</a>`)
	shows(t, pages, "/console/errors?status=archived", "No group matches")
	shows(t, pages, path, `value="user.id, user"`, `name="archive_after_days" type="number" value="0"`)
	_, page := get(pages, path)
	form := url.Values{"project": {"shop"}, "if_since": sinceField.FindStringSubmatch(page)[1:], "release": {"release"}, "service": {""},
		"user": {"account.id , user"}, "host": {"host"}, "archive_after_days": {"30"}, "key": {"once"}}
	for range 2 { // a second click
		if status, leads := post(pages, path, form); status != http.StatusSeeOther || leads != path+"?project=shop" {
			t.Errorf("set: %d %s", status, leads)
		}
	}
	shows(t, pages, path+"?project=shop", `value="account.id, user"`, `type="number" value="30"`, "Set by <bdi>you</bdi>")
	form.Set("key", "another")
	if status, body := post(pages, path, form); status != http.StatusConflict || !strings.Contains(body, "Somebody else has changed this") {
		t.Errorf("the second: %d %s", status, body)
	}
	form.Del("if_since")
	for name, wrong := range map[string]string{"archive_after_days": "many", "user": "a..b"} {
		faulty := url.Values{}
		for k, v := range form {
			faulty[k] = v
		}
		faulty.Set(name, wrong)
		faulty.Set("key", name)
		if status, body := post(pages, path, faulty); status != http.StatusUnprocessableEntity || !strings.Contains(body, `id="fault-`+name+`"`) {
			t.Errorf("%s is %q: %d %s", name, wrong, status, body)
		}
	}
	if status, _ := get(pages, path+"?project=lair"); status != http.StatusNotFound {
		t.Errorf("a project of others: %d", status)
	}
	viewer := pagesFor(t, "viewer")
	shows(t, viewer, path, "<dt>User</dt>", "There are none.")
	if status, _ := post(viewer, path, form); status != http.StatusForbidden {
		t.Errorf("a viewer: %d", status)
	}
}

// Rules are written one a line, kept, and applied to what nobody looks after.
func TestOwnersPage(t *testing.T) {
	pages := pagesFor(t, "developer")
	const path = "/console/errors/settings"
	form := url.Values{"project": {"shop"}, "rules": {"path:A.java => Alpha <team>\r\npath:** => mem_1\r\n"}, "key": {"once"}}
	if status, leads := post(pages, path+"/owners", form); status != http.StatusSeeOther || leads != path+"?project=shop#owners" {
		t.Fatalf("set: %d %s", status, leads)
	}
	shows(t, pages, path, "path:A.java =&gt; Alpha &lt;team&gt;\npath:** =&gt; mem_1", "<b><bdi>you</bdi></b> set 2 rules", "Apply to unresolved errors")
	if status, body := post(pages, path+"/owners", url.Values{"project": {"shop"}, "rules": {"path:a => b\nfile:c => d"}}); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, `id="fault-rules">Line 2: &#34;file&#34; is not one of`) || !strings.Contains(body, "file:c =&gt; d</textarea>") {
		t.Errorf("a wrong rule: %d %s", status, body)
	}
	if status, leads := post(pages, path+"/owners/apply", url.Values{"project": {"shop"}}); status != http.StatusSeeOther || leads != path+"?project=shop#owners" {
		t.Errorf("applied: %d %s", status, leads)
	}
	shows(t, pages, "/console/errors", "<bdi>Alpha &lt;team&gt;</bdi>")
	_, list := get(pages, "/console/errors")
	shows(t, pages, groupLink.FindStringSubmatch(list)[1], "assigned it to Alpha &lt;team&gt;. Rule 1 matched: path:A.java.")
	if status, _ := post(pages, path+"/owners", url.Values{"project": {"lair"}, "rules": {""}}); status != http.StatusNotFound {
		t.Errorf("a project of others: %d", status)
	}
}
