package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// post sends a form, and returns the status and where it leads.
func post(pages http.Handler, path string, form url.Values) (int, string) {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, request)
	if answer.Code == http.StatusSeeOther {
		return answer.Code, answer.Header().Get("Location")
	}
	return answer.Code, answer.Body.String()
}

var versionField = regexp.MustCompile(`name="version" value="([0-9]+)"`)

// shows opens a page and reports whether it has all texts.
func shows(t *testing.T, pages http.Handler, path string, texts ...string) {
	t.Helper()
	status, body := get(pages, path)
	for _, text := range texts {
		if status != http.StatusOK || !strings.Contains(body, text) {
			t.Errorf("%s: %d without %q: %s", path, status, text, body)
		}
	}
}

// A developer resolves, ignores, assigns and notes; the page
// tells it, and whoever is second sees what the first did.
func TestDecide(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	path := groupLink.FindStringSubmatch(list)[1]
	send := func(want int, pairs ...string) string {
		t.Helper()
		_, page := get(pages, path)
		form := url.Values{"version": {versionField.FindStringSubmatch(page)[1]}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		status, leads := post(pages, path+"/decide", form)
		if status != want {
			t.Errorf("%v: %d, want %d: %s", pairs, status, want, leads)
		}
		return leads
	}
	send(303, "do", "resolve-in", "release", "2.1.0")
	shows(t, pages, path, "resolved in 2.1.0", "<b><bdi>you</bdi></b> <bdi>resolved it in 2.1.0</bdi>", `value="reopen"`)
	shows(t, pages, "/console/errors", "BetaError")
	if _, list := get(pages, "/console/errors"); strings.Contains(list, "AlphaError") {
		t.Error("the list of what is unresolved has it still")
	}
	shows(t, pages, "/console/errors?status=resolved", "AlphaError")
	shows(t, pages, "/console/errors?status=all", "AlphaError", "BetaError", "resolved in 2.1.0")
	send(303, "do", "reopen")
	send(303, "do", "ignore-until", "until", "h100")
	shows(t, pages, path, "ignored until it happens 100 times within one hour")
	send(303, "do", "assign", "assignee", "payments")
	send(303, "do", "note", "note", "see\r\n#7")
	shows(t, pages, path, "looked after by <bdi>payments</bdi>", "see\n#7", "assigned it to payments")
	send(303, "do", "link", "url", "https://tracker.example/PAY-7", "title", "PAY-7", "webhook", "whk_1")
	shows(t, pages, path, `<a href="https://tracker.example/PAY-7" rel="noopener noreferrer nofollow"><bdi>PAY-7</bdi></a>`, "its webhook <code>whk_1</code> was deleted: nothing is notified", "linked it to PAY-7")
	if page := send(422, "do", "link", "url", "javascript:alert(1)"); strings.Contains(page, `href="javascript:`) {
		t.Errorf("a script as link: %s", page)
	}
	_, linked := get(pages, path)
	send(303, "do", "unlink", "link", regexp.MustCompile(`name="link" value="(https:[^"]+)"`).FindStringSubmatch(linked)[1])
	shows(t, pages, path, "removed the link to PAY-7")
	send(303, "do", "assign-me")
	shows(t, pages, path, "looked after by <bdi>you</bdi>")
	if page := send(409, "do", "resolve", "version", "0"); !strings.Contains(page, "Somebody decided meanwhile") || !strings.Contains(page, `<a href="`+path+`?by=hour">`) {
		t.Errorf("the second of two reads %s", page)
	}
	if page := send(422, "do", "resolve-next"); !strings.Contains(page, "No release of the project is known") {
		t.Errorf("without a release: %s", page)
	}
	send(400, "do", "explode")
	shown := url.Values{"do": {"ignore-until"}, "until": {"1h"}, "key": {"once"}}
	for range 2 { // a second click
		if status, leads := post(pages, path+"/decide", shown); status != 303 {
			t.Errorf("the same form again: %d %s", status, leads)
		}
	}
	if status, leads := post(pages, path+"/decide", url.Values{"do": {"reopen"}, "key": {"once"}}); status != 303 {
		t.Errorf("another button of the same page: %d %s", status, leads)
	}
	if status, _ := post(pages, "/console/errors/grp_0/decide", url.Values{"do": {"resolve"}}); status != 404 {
		t.Errorf("a group that does not exist: %d", status)
	}
}

// Of a group about which much was decided, all can be read.
func TestOldActivity(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	path := groupLink.FindStringSubmatch(list)[1]
	for n := range 52 {
		if status, leads := post(pages, path+"/decide", url.Values{"do": {"note"}, "note": {fmt.Sprintf("note %d.", n)}}); status != 303 {
			t.Fatalf("note %d: %d %s", n, status, leads)
		}
	}
	shows(t, pages, path, "note 51.", "note 2.", `<a href="`+path+`?before=3#activity">Older</a>`)
	shows(t, pages, path+"?before=3", "note 1.", "note 0.")
	if _, page := get(pages, path+"?before=3"); strings.Contains(page, "note 2.") || strings.Contains(page, "Older") {
		t.Error("the page before it has more than it should")
	}
}

// A note mentions members, and says whom it does not; a group is assigned by name.
func TestMentions(t *testing.T) {
	directory := identity.NewDirectory()
	for _, fact := range []string{`{"organization":"acme","member":"mem_ada","name":"Ada Lovelace","role":"viewer"}`, `{"organization":"acme","member":"mem_bill","name":"Bill","role":"billing"}`} {
		if err := directory.Apply(contract.TypeMemberAdded, []byte(fact)); err != nil {
			t.Fatal(err)
		}
	}
	pages := pagesWith(t, groupingtest.With(t, func(c *groups.Config) { c.Projects = directory }), directory, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	path := groupLink.FindStringSubmatch(list)[1]
	shows(t, pages, path, `<option value="Ada Lovelace">`, "such as @Ada Lovelace")
	for _, form := range []url.Values{{"do": {"note"}, "note": {"<b> @ada, @Bill or @bob?"}}, {"do": {"assign"}, "assignee": {"ada lovelace"}}} {
		if status, leads := post(pages, path+"/decide", form); status != 303 {
			t.Fatalf("%v: %d %s", form, status, leads)
		}
	}
	shows(t, pages, path, `<pre class="wrap">&lt;b&gt; <span class="badge accent">@ada</span>, @Bill or @bob?</pre>`,
		"Nobody was notified for <bdi>@Bill</bdi>, <bdi>@bob</bdi>: no member has this name", "looked after by <bdi>Ada Lovelace</bdi>", `value="Ada Lovelace" autocomplete`)
	if status, body := post(pages, path+"/decide", url.Values{"do": {"note"}, "note": {strings.Repeat("x", 2001)}}); status != 422 {
		t.Errorf("a note that is too long: %d %s", status, body)
	}
	shows(t, pages, "/console/errors?q="+url.QueryEscape(`assigned:"Ada Lovelace"`), "AlphaError")
	if err := directory.Apply(contract.TypeMemberRemoved, []byte(`{"organization":"acme","member":"mem_ada"}`)); err != nil {
		t.Fatal(err)
	}
	shows(t, pages, path, `<pre class="wrap">&lt;b&gt; @ada, @Bill or @bob?</pre>`)
}

// Of a name that several have and the whole name of one of them, only this is
// a mention, also when the others are gone.
func TestUnclearMentions(t *testing.T) {
	directory := identity.NewDirectory()
	apply := func(fact, body string) {
		t.Helper()
		if err := directory.Apply(fact, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	apply(contract.TypeMemberAdded, `{"organization":"acme","member":"mem_1","name":"Ada Byron","role":"viewer"}`)
	apply(contract.TypeMemberAdded, `{"organization":"acme","member":"mem_2","name":"Ada Lovelace","role":"viewer"}`)
	pages := pagesWith(t, groupingtest.With(t, func(c *groups.Config) { c.Projects = directory }), directory, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	path := groupLink.FindStringSubmatch(list)[1]
	if status, leads := post(pages, path+"/decide", url.Values{"do": {"note"}, "note": {"@Ada: @Ada Byron"}}); status != 303 {
		t.Fatalf("the note: %d %s", status, leads)
	}
	note := `<pre class="wrap">@Ada: <span class="badge accent">@Ada Byron</span></pre>`
	shows(t, pages, path, note, "Nobody was notified for <bdi>@Ada</bdi>")
	apply(contract.TypeMemberRemoved, `{"organization":"acme","member":"mem_2"}`)
	shows(t, pages, path, note)
}

var groupField = regexp.MustCompile(`name="group" value="([^"]+)"`)

// Several are chosen, or all that a search finds.
func TestDecideAll(t *testing.T) {
	pages := pagesFor(t, "admin")
	_, list := get(pages, "/console/errors?q=alpha")
	if status, leads := post(pages, "/console/errors/decide?q=alpha", url.Values{"do": {"resolve"}, "group": {groupField.FindStringSubmatch(list)[1]}}); status != 303 || leads != "/console/errors?q=alpha" {
		t.Errorf("resolving one leads to %d %s", status, leads)
	}
	shows(t, pages, "/console/errors?status=resolved", "AlphaError")
	if status, leads := post(pages, "/console/errors/decide?last=any", url.Values{"do": {"ignore"}, "all": {"1"}}); status != 303 {
		t.Errorf("ignoring all: %d %s", status, leads)
	}
	shows(t, pages, "/console/errors?status=ignored", "BetaError")
	shows(t, pages, "/console/errors?status=resolved", "AlphaError")
	if status, _ := post(pages, "/console/errors/decide", url.Values{"do": {"ignore"}}); status != 303 {
		t.Errorf("choosing none: %d", status)
	}
	if status, _ := get(pages, "/console/errors?status=lost"); status != 404 {
		t.Errorf("an unknown list: %d", status)
	}
}

// Who chooses from a list that somebody has overtaken changes nothing, and sees
// what the other did.
func TestDecideAboutAnOldList(t *testing.T) {
	pages := pagesFor(t, "developer")
	_, list := get(pages, "/console/errors?q=alpha")
	chosen := groupField.FindStringSubmatch(list)[1]
	if status, leads := post(pages, "/console/errors/decide", url.Values{"do": {"resolve"}, "group": {chosen}}); status != 303 {
		t.Fatalf("resolving leads to %d %s", status, leads)
	}
	request := httptest.NewRequest(http.MethodPost, "/console/errors/decide", strings.NewReader(url.Values{"do": {"ignore"}, "group": {chosen}}.Encode()))
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, request)
	if flash := answer.Header().Get("Set-Cookie"); answer.Code != 303 || !strings.Contains(flash, "=conflict;") {
		t.Errorf("ignoring it leads to %d, %s", answer.Code, flash)
	}
	shows(t, pages, "/console/errors?status=resolved", "AlphaError")
}

// A viewer sees no buttons, and may not send what they would.
func TestViewersDecideNothing(t *testing.T) {
	pages := newPages(t)
	_, list := get(pages, "/console/errors")
	path := groupLink.FindStringSubmatch(list)[1]
	if _, page := get(pages, path); strings.Contains(page, `name="do"`) || strings.Contains(list, `name="do"`) {
		t.Error("a viewer has buttons")
	}
	for _, path := range []string{path + "/decide", "/console/errors/decide"} {
		if status, body := post(pages, path, url.Values{"do": {"resolve"}}); status != 403 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// A link names one of the organization's webhooks, chosen from a list; when that
// is deleted, the link stays and says so.
func TestLinkWebhooks(t *testing.T) {
	directory := identity.NewDirectory()
	apply := func(kind, value string) { testenv.Must(t, directory.Apply(kind, []byte(value))) }
	service := groupingtest.With(t, func(config *groups.Config) { config.Projects = directory })
	apply(contract.TypeWebhookChanged, groupingtest.Webhook)
	pages := pagesWith(t, service, directory, "developer")
	_, list := get(pages, "/console/errors")
	path := regexp.MustCompile(`/console/errors/grp_\w+`).FindString(list)
	shows(t, pages, path, `<option value="whk_1">hooks.example</option>`)
	link := url.Values{"do": {"link"}, "url": {"https://tracker.example/1"}, "webhook": {"whk_2"}}
	if status, body := post(pages, path+"/decide", link); status < 400 || !strings.Contains(body, "whk_2") {
		t.Errorf("an unknown webhook: %d %s", status, body)
	}
	link.Set("webhook", "whk_1")
	if status, body := post(pages, path+"/decide", link); status != 303 {
		t.Fatalf("%d %s", status, body)
	}
	shows(t, pages, path, "the webhook of <bdi>hooks.example</bdi> is notified")
	apply(contract.TypeWebhookChanged, strings.Replace(groupingtest.Webhook, `"on":true`, `"on":false`, 1))
	shows(t, pages, path, "is switched off", "hooks.example (switched off)")
	apply(contract.TypeWebhookDeleted, `{"organization":"acme","webhook":"whk_1"}`)
	shows(t, pages, path, "tracker.example", "its webhook <code>whk_1</code> was deleted: nothing is notified")
}
