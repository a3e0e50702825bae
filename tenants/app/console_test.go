package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

const (
	projectsPage = "/console/settings/projects"
	apiKeysPage  = "/console/settings/api-keys"
	membersPage  = "/console/settings/members"
)

// consoleRoutes are the routes of the console; open ones work without a session.
func consoleRoutes(t *testing.T, p *process) (routes, open []string) {
	t.Helper()
	open = []string{"GET /console", "GET /console/*", "GET /console/sign-in", "POST /console/sign-in", "POST /console/sign-out",
		"POST /console/sign-in/passkey", "POST /console/sign-in/passkey/options", "GET /console/sign-in/oidc", "GET /console/sign-in/oidc/callback",
		"GET /console/welcome", "POST /console/welcome", "GET /console/join", "POST /console/join", "GET /console/reset", "POST /console/reset",
		"GET /console/unsubscribe", "POST /console/unsubscribe",
		"GET /console/assets/{version}/{name}"}
	err := chi.Walk(p.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(route, "/console") {
			routes = append(routes, method+" "+route)
		}
		return nil
	})
	if err != nil || len(routes) < 14 {
		t.Fatalf("%d routes, %v", len(routes), err)
	}
	return routes, open
}

func pathOf(route string, of tenant) (method, path string) {
	method, path, _ = strings.Cut(route, " ")
	return method, strings.NewReplacer("{id}", of.key, "{version}", "0", "*", "x").Replace(path)
}

// Without a session every page redirects to
// the sign-in, and shows and does nothing.
func testPagesNeedASession(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	routes, open := consoleRoutes(t, p)
	for _, route := range routes {
		if slices.Contains(open, route) {
			continue
		}
		method, path := pathOf(route, acme)
		for name, cookie := range map[string]string{"no cookie": "", "an API key": acme.secret, "a service token": acme.token, "nonsense": "x"} {
			b := p.browser("192.0.2.1")
			if cookie != "" {
				b.Cookies[identity.SessionCookie] = &http.Cookie{Name: identity.SessionCookie, Value: cookie}
			}
			request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
			if got := b.send(t, request); got.status != 303 || got.header.Get("Location") != "/console/sign-in" || strings.Contains(got.body, acme.project) {
				t.Errorf("%s with %s: %d %v", route, name, got.status, got.header)
			}
		}
	}
}

// Another site can't make a member's browser do anything,
// show the console in a frame, or run scripts in it.
func testOtherSitesCanDoNothing(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	routes, _ := consoleRoutes(t, p)
	for _, route := range routes {
		method, path := pathOf(route, acme)
		if method == "POST" {
			for _, site := range []string{"cross-site", "same-site"} {
				got := b.post(t, path, map[string]string{"name": "evil", "reason": "evil"}, header{"Sec-Fetch-Site", site}, header{"Origin", "https://evil.example"})
				if got.status != 403 || !strings.Contains(got.body, "Another site") {
					t.Errorf("%s from another site: %d", route, got.status)
				}
			}
			continue
		}
		got := b.get(t, path)
		if policy := got.header.Get("Content-Security-Policy"); !strings.Contains(path, "assets") && !strings.HasPrefix(policy, "default-src 'none'") {
			t.Errorf("%s has the policy %q", route, policy)
		}
	}
	if got := b.get(t, apiKeysPage); got.status != 200 || strings.Contains(got.body, "evil") || strings.Contains(got.body, "revoked") {
		t.Errorf("something was done: %d %s", got.status, got.body)
	}
}

// A key is created with a few clicks, shown once,
// works, is recognizable, and is revoked with a reason.
func testAPIKeyByTheConsole(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "developer")

	if got := b.post(t, projectsPage, map[string]string{"name": " Checkout ", "form": "f1"}); got.status != 303 {
		t.Fatalf("create a project: %d %s", got.status, got.body)
	}
	listed := b.get(t, projectsPage)
	project := regexp.MustCompile(`Checkout</th>\s*<td[^>]*><code>(prj_[0-9a-f]+)</code>`).FindStringSubmatch(listed.body)
	if project == nil || !strings.Contains(listed.body, "The project was created") {
		t.Fatalf("the project is not listed: %s", listed.body)
	}
	form := b.get(t, apiKeysPage+"/new?project="+project[1])
	if !strings.Contains(form.body, `value="`+project[1]+`" selected`) || !strings.Contains(form.body, ">Staging<") {
		t.Errorf("the form: %s", form.body)
	}
	values := map[string]string{"name": "pods", "project": project[1], "environment": "staging", "form": "f2"}
	created := b.post(t, apiKeysPage, values)
	key := regexp.MustCompile(`weir_[0-9a-f]{48}`).FindString(created.body)
	if created.status != 201 || key == "" || !strings.Contains(created.text(), "curl 'https://weir.example/v1/logs'") || created.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("create a key: %d %v %s", created.status, created.header, created.body)
	}
	if got := n.awaitLookup(t, key, nil); got.Organization != acme.organization || got.Project != project[1] || got.Environment != "staging" {
		t.Errorf("the key is %+v", got)
	}
	if got := b.post(t, apiKeysPage, values); got.status != 409 || strings.Contains(got.body, "weir_") {
		t.Errorf("the same form again: %d %s", got.status, got.body)
	}

	keys := b.get(t, apiKeysPage)
	if !strings.Contains(keys.text(), "weir_"+key[5:9]+"…"+key[len(key)-4:]) || strings.Contains(keys.body, key) {
		t.Errorf("the list: %s", keys.body)
	}
	revoke := regexp.MustCompile(`href="(/console/settings/api-keys/[^/]+/revoke)">Revoke<span class="unseen"> pods`).FindStringSubmatch(keys.body)
	if revoke == nil {
		t.Fatalf("the list has no way to revoke: %s", keys.body)
	}
	if got := b.get(t, revoke[1]); got.status != 200 || !strings.Contains(got.body, "pods") {
		t.Errorf("the page to revoke: %d %s", got.status, got.body)
	}
	if got := b.post(t, revoke[1], map[string]string{"reason": "a\x1bb"}); got.status != 422 || !strings.Contains(got.body, `id="fault-reason"`) {
		t.Errorf("a reason that can't be: %d %s", got.status, got.body)
	}
	if got := b.post(t, revoke[1], map[string]string{"reason": "leaked in a gist"}); got.status != 303 {
		t.Errorf("revoke: %d %s", got.status, got.body)
	}
	n.awaitLookup(t, key, identity.ErrRevoked)
	if got := b.get(t, apiKeysPage); !strings.Contains(got.body, "leaked in a gist") || !strings.Contains(got.body, "was revoked") {
		t.Errorf("the list after that: %s", got.body)
	}
	if strings.Contains(p.world.log.String(), key) {
		t.Error("the key is logged")
	}
}

// A fault is shown beside its field, and no input is lost.
func testFaultsStandBesideTheirFields(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	long := strings.Repeat("n", 201)
	for name, test := range map[string]struct {
		path   string
		form   map[string]string
		status int
		wants  []string
	}{
		"a project without a name":  {projectsPage, nil, 422, []string{`id="fault-name"`}},
		"a project's name too long": {projectsPage, map[string]string{"name": long}, 422, []string{`id="fault-name"`, long}},
		"a key without anything":    {apiKeysPage, nil, 422, []string{`id="fault-name"`, `id="fault-project"`, `id="fault-environment"`}},
		"no such environment":       {apiKeysPage, map[string]string{"name": "kept", "project": acme.project, "environment": "production"}, 422, []string{`id="fault-environment"`, `value="kept"`, `value="` + acme.project + `" selected`}},
		"no such project":           {apiKeysPage, map[string]string{"name": "k", "project": "prj_0", "environment": "dev"}, 404, nil},
		"a project that is no id":   {apiKeysPage, map[string]string{"name": "k", "project": "a\x00b", "environment": "dev"}, 404, nil},
		"a form too large":          {projectsPage, map[string]string{"name": strings.Repeat("n", 70_000)}, 400, nil},
		"no such key":               {apiKeysPage + "/key_0/revoke", nil, 404, nil},
		"a key that is no id":       {apiKeysPage + "/%00/revoke", nil, 404, nil},
	} {
		got := b.post(t, test.path, test.form)
		if got.status != test.status {
			t.Errorf("%s: %d, want %d: %s", name, got.status, test.status, got.body)
		}
		for _, want := range test.wants {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s: the page lacks %.80s", name, want)
			}
		}
	}
	for _, path := range []string{"/console/settings/none", projectsPage + "?cursor=x", apiKeysPage + "?cursor=e30", apiKeysPage + "/%00/revoke"} {
		if got := b.get(t, path); got.status != 404 && got.status != 400 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

// What a role may not do is refused with the
// reason and the roles that may, and not offered.
func testRolesInTheConsole(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	key := func(environment, name string) string {
		return p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": acme.project, "environment": environment, "name": name})).get("id")
	}
	for _, role := range tenants.Roles() {
		b := p.signedIn(t, acme, string(role))
		for path, permission := range map[string]tenants.Permission{projectsPage: tenants.ProjectsRead, apiKeysPage: tenants.APIKeysRead} {
			got := b.get(t, path)
			offered := strings.Contains(got.body, "<form class") || strings.Contains(got.body, "Create New API Key</a>")
			if refused(got, role) == role.May(permission) || offered != role.May(tenants.ProjectsWrite) {
				t.Errorf("%s on %s: %d, offered to change something: %t", role, path, got.status, offered)
			}
		}
		staging, prod := key("staging", "of "+string(role)), key("prod", "of "+string(role))
		listed := b.get(t, apiKeysPage).body
		for environment, id := range map[tenants.Environment]string{tenants.Staging: staging, tenants.Prod: prod} {
			if strings.Contains(listed, id+"/revoke") != role.MayIssueFor(environment) {
				t.Errorf("%s: offered to revoke a key of %s: %t", role, environment, !role.MayIssueFor(environment))
			}
		}
		if form := b.get(t, apiKeysPage+"/new").body; strings.Contains(form, ">Prod<") != role.MayIssueFor(tenants.Prod) {
			t.Errorf("%s: the form: %s", role, form)
		}
		for name, act := range map[string]struct {
			got  page
			need tenants.Permission
		}{
			"create a project":      {b.post(t, projectsPage, map[string]string{"name": "by " + string(role)}), tenants.ProjectsWrite},
			"ask for a key":         {b.get(t, apiKeysPage+"/new"), tenants.APIKeysWrite},
			"create a key of dev":   {b.post(t, apiKeysPage, map[string]string{"name": "by " + string(role), "project": acme.project, "environment": "dev"}), tenants.APIKeysWrite},
			"create a key of prod":  {b.post(t, apiKeysPage, map[string]string{"name": "prod by " + string(role), "project": acme.project, "environment": "prod"}), tenants.APIKeysWriteProd},
			"ask to revoke prod":    {b.get(t, apiKeysPage+"/"+prod+"/revoke"), tenants.APIKeysWriteProd},
			"ask to revoke staging": {b.get(t, apiKeysPage+"/"+staging+"/revoke"), tenants.APIKeysWrite},
			"revoke prod":           {b.post(t, apiKeysPage+"/"+prod+"/revoke", nil), tenants.APIKeysWriteProd},
			"revoke staging":        {b.post(t, apiKeysPage+"/"+staging+"/revoke", nil), tenants.APIKeysWrite},
		} {
			if refused(act.got, role) == role.May(act.need) || act.got.status >= 404 {
				t.Errorf("%s: %s: %d %s", role, name, act.got.status, act.got.body)
			}
		}
	}
	list := p.must(t, 200, "GET", "/v1/api-keys?project="+acme.project, "").text
	for _, trace := range []string{`"by viewer`, `"by billing`, `"prod by developer`} {
		if strings.Contains(list, trace) {
			t.Errorf("%q was done", trace)
		}
	}
}

// refused reports whether a page refuses
// a role, and names the roles that may.
func refused(got page, role tenants.Role) bool {
	return got.status == 403 && strings.Contains(got.body, "Your role here is "+string(role)) && strings.Contains(got.body, "Ask ")
}

// Members read and change only their own organization's;
// what is foreign looks like what does not exist.
func testConsoleIsolation(t *testing.T, p *process) {
	a, b := p.tenant(t, "Alpha"), p.tenant(t, "Beta")
	p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": a.organization, "name": "Secret of Alpha"}))
	owner := p.signedIn(t, b, "owner")
	routes, _ := consoleRoutes(t, p)
	for _, route := range routes {
		method, path := pathOf(route, a)
		if method != "GET" {
			continue
		}
		got := owner.get(t, path+"?project="+a.project)
		for _, foreign := range []string{"Alpha", a.organization, a.key} {
			if strings.Contains(got.body, foreign) && !strings.Contains(path, foreign) {
				t.Errorf("%s shows %q", route, foreign)
			}
		}
		if strings.Contains(path, a.key) && got.status != 404 {
			t.Errorf("%s of another organization: %d", route, got.status)
		}
	}
	foreign := owner.post(t, apiKeysPage, map[string]string{"name": "k", "project": a.project, "environment": "dev"})
	unknown := owner.post(t, apiKeysPage, map[string]string{"name": "k", "project": "prj_0", "environment": "dev"})
	if foreign.status != 404 || strings.ReplaceAll(foreign.body, a.project, "prj_0") != unknown.body {
		t.Errorf("a foreign project: %d %s", foreign.status, foreign.body)
	}
	if got := owner.post(t, apiKeysPage+"/"+a.key+"/revoke", nil); got.status != 404 {
		t.Errorf("revoking a foreign key: %d", got.status)
	}
	keys := p.must(t, 200, "GET", "/v1/api-keys?project="+a.project, "").items(t)
	if len(keys) != 1 || keys[0]["state"] != "active" {
		t.Errorf("the other organization's keys are now %v", keys)
	}
}

// No name can break out of its place on a page.
func testNamesStayNames(t *testing.T, p *process) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'{{.}}`
	organization := p.must(t, 201, "POST", "/v1/organizations", text(map[string]any{"name": hostile, "tier": "indie"})).get("id")
	project := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": organization, "name": hostile})).get("id")
	key := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": project, "environment": "dev", "name": hostile})).get("id")
	p.must(t, 200, "POST", "/v1/api-keys/"+key+"/revoke", text(map[string]any{"reason": hostile}))
	live := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": project, "environment": "dev", "name": hostile})).get("id")
	evil := member(organization, "'x@example.com", "owner")
	evil["name"] = hostile
	p.must(t, 201, "POST", "/v1/members", text(evil))
	b := p.browser("192.0.2.3")
	b.signIn(t, "'x@example.com", password)
	p.must(t, 201, "POST", "/v1/service-tokens", text(map[string]any{"organization": organization, "name": hostile, "scopes": []string{"billing:read"}}))
	other := member(organization, "y@example.com", "viewer")
	other["name"] = hostile
	viewer := p.must(t, 201, "POST", "/v1/members", text(other)).get("id")
	anybody := p.browser("192.0.2.5")
	registration := map[string]string{"code": hostile, "organization": hostile, "name": hostile, "email": hostile, "password": password}
	for name, got := range map[string]page{
		"projects":        b.get(t, projectsPage),
		"project":         b.get(t, projectsPage+"/"+project),
		"organization":    b.get(t, "/console/settings/organization"),
		"members":         b.get(t, membersPage),
		"member":          b.get(t, membersPage+"/"+viewer),
		"remove a member": b.get(t, membersPage+"/"+viewer+"/remove"),
		"reset a member":  b.get(t, membersPage+"/"+viewer+"/reset"),
		"keys":            b.get(t, apiKeysPage),
		"new key":         b.get(t, apiKeysPage+"/new"),
		"key":             b.get(t, apiKeysPage+"/"+key),
		"rename a key":    b.get(t, apiKeysPage+"/"+live+"/edit"),
		"rotate a key":    b.get(t, apiKeysPage+"/"+live+"/rotate"),
		"revoke a key":    b.get(t, apiKeysPage+"/"+live+"/revoke"),
		"revoke it again": b.get(t, apiKeysPage+"/"+key+"/revoke"),
		"service tokens":  b.get(t, "/console/settings/service-tokens"),
		"audit log":       b.get(t, "/console/settings/audit"),
		"audit filter":    b.get(t, "/console/settings/audit?actor="+url.QueryEscape(hostile)),
		"bad project":     b.post(t, projectsPage, map[string]string{"name": hostile + "\x00"}),
		"bad invitation":  b.post(t, membersPage+"/invitations", map[string]string{"email": hostile, "role": "viewer"}),
		"created key":     b.post(t, apiKeysPage, map[string]string{"name": hostile, "project": project, "environment": "prod"}),
		"welcome":         anybody.post(t, "/console/welcome", registration),
		"join":            anybody.post(t, "/console/join", registration),
		"reset":           anybody.post(t, "/console/reset", registration),
	} {
		if strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<img src=x") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if !strings.Contains(got.text(), hostile) {
			t.Errorf("%s does not show the name: %d %.3000s", name, got.status, got.body)
		}
	}
	if got := p.browser("192.0.2.4").signIn(t, hostile, hostile); strings.Contains(got.body, "<script>") || !strings.Contains(got.text(), "<script>") {
		t.Errorf("the sign-in: %s", got.body)
	}
}
