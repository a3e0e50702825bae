package app_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`

// testConsole is a process with its pages, and the events of other services.
type testConsole struct {
	*rig
	app *app.App
}

func newTestConsole(t *testing.T) *testConsole {
	t.Helper()
	r := newRig(t)
	grouping, _ := r.start()
	awaitReady(t, grouping)
	return &testConsole{rig: r, app: grouping}
}

// project publishes a project.
func (p *testConsole) project(organization, project, name string) {
	p.t.Helper()
	p.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, organization,
		contract.ProjectCreated{Organization: organization, Project: project, Name: name})
}

// fail publishes one entry with an error.
func (p *testConsole) fail(organization, project, errorType, text string, trace ...string) {
	p.t.Helper()
	line, _ := json.Marshal(map[string]any{
		"timestamp": "2026-11-21T09:30:00Z", "level": "error", "message": "failed", "environment": "prod",
		"error": map[string]any{"type": errorType, "message": text, "stack_trace": trace},
	})
	accepted := contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: 1, Organization: organization, Project: project, Environment: "prod",
		Key: "key_1", Source: "weir/ingest", Time: time.Now(), Entries: 1, Bytes: int64(len(line)), Errors: 1, Lines: append(line, '\n'),
	}
	p.Accept(accepted)
}

func (p *testConsole) get(session, path string) (status int, body string) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	answer := httptest.NewRecorder()
	p.app.Handler().ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

// await returns the page at path once it holds text.
func (p *testConsole) await(session, path, text string) (body string) {
	p.t.Helper()
	testenv.Eventually(p.t, time.Minute, func() error {
		status, page := p.get(session, path)
		if body = page; status != http.StatusOK || !strings.Contains(html.UnescapeString(page), text) {
			return fmt.Errorf("%d, want a page with %q: %s", status, text, page)
		}
		return nil
	})
	return body
}

var groupLink = regexp.MustCompile(`href="(/console/errors/[^"?]+)"`)

// The list shows each kind of error once with its count. A
// group shows its samples and why it is one. Texts are escaped.
func TestErrorPages(t *testing.T) {
	p := newTestConsole(t)
	p.project("org_1", "prj_1", "Shop"+hostile)
	session := p.SignIn("org_1", "viewer")
	p.await(session, "/console/errors", "No errors yet")
	for range 3 {
		p.fail("org_1", "prj_1", "TypeError", hostile, "TypeError: "+hostile, "at total"+hostile+" (/srv/shop/cart.js:41:13)", "at checkout (/srv/shop/pay.js:7:2)")
	}
	list := p.await(session, "/console/errors", `data-label="Count">3</td>`)
	link := groupLink.FindStringSubmatch(list)
	if link == nil || strings.Count(list, `href="/console/errors/`) != 1 {
		t.Fatalf("the list has no link, or several:\n%s", list)
	}
	group := p.await(session, link[1], "cart.js")
	if !strings.Contains(html.UnescapeString(group), hostile) || !strings.Contains(group, "3 times") || !strings.Contains(group, "Why these are one group") {
		t.Errorf("the group:\n%s", group)
	}
	for name, body := range map[string]string{"list": list, "group": group} {
		if strings.Contains(body, "<script") || strings.Contains(body, "<img src=x") {
			t.Errorf("the %s lets a text out:\n%s", name, body)
		}
	}
	for query, want := range map[string]string{"?project=prj_1": "TypeError", "?project=&q=typeerror": "TypeError", "?q=nothing": "No group matches"} {
		if status, body := p.get(session, "/console/errors"+query); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	for path, want := range map[string]int{"/console/errors?cursor=x": 400, "/console/errors?project=prj_9": 404, "/console/errors/grp_0": 404, "/console/errors/%00": 404, "/console/errors/%ff": 404} {
		if status, body := p.get(session, path); status != want {
			t.Errorf("%s: %d, want %d: %s", path, status, want, body)
		}
	}
}

// Members see their own organization's errors. A
// foreign group or project looks like an unknown one.
func TestErrorPagesAreIsolated(t *testing.T) {
	p := newTestConsole(t)
	p.project("org_1", "prj_1", "Alpha")
	p.project("org_2", "prj_2", "Beta")
	owner, stranger := p.SignIn("org_1", "viewer"), p.SignIn("org_2", "viewer")
	p.fail("org_1", "prj_1", "TypeError", "secret of alpha")
	link := groupLink.FindStringSubmatch(p.await(owner, "/console/errors", "TypeError"))
	if link == nil {
		t.Fatal("the list has no link")
	}
	if list := p.await(stranger, "/console/errors", "No errors yet"); strings.Contains(list, "Alpha") || strings.Contains(list, "prj_1") {
		t.Errorf("another organization sees\n%s", list)
	}
	for foreign, unknown := range map[string]string{link[1]: "/console/errors/grp_0", "/console/errors?project=prj_1": "/console/errors?project=prj_0"} {
		status, body := p.get(stranger, foreign)
		unknownStatus, unknownBody := p.get(stranger, unknown)
		last := func(path string) string { return path[strings.LastIndexAny(path, "/=")+1:] }
		if status != http.StatusNotFound || status != unknownStatus || strings.ReplaceAll(body, last(foreign), last(unknown)) != unknownBody {
			t.Errorf("%s: %d %s\n%s: %d %s", foreign, status, body, unknown, unknownStatus, unknownBody)
		}
	}
	for name, session := range map[string]string{"nobody": "", "a stranger": identity.SessionPrefix + strings.Repeat("0", 48)} {
		for _, path := range []string{"/console/errors", link[1]} {
			if status, body := p.get(session, path); status != http.StatusSeeOther || strings.Contains(body, "alpha") {
				t.Errorf("%s on %s: %d", name, path, status)
			}
		}
	}
}
