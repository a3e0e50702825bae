package isolation

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// password of every member.
const password = "correct horse battery staple"

// A tenant is an organization with one of everything that a policy can
// name in braces.
type tenant struct {
	world  *world
	name   string
	things map[string]string // ids by their names, such as "project"
	key    string            // the secret of its API key
}

// makers make a new thing for each use, because the route uses it up,
// and return its id. Their names begin with "new-".
var makers = map[string]func(t *testing.T, of *tenant) string{
	"new-key": func(t *testing.T, of *tenant) string {
		return of.world.operate(t, "POST", "/v1/api-keys",
			map[string]any{"project": of.things["project"], "environment": "prod", "name": "used up"}).get("id")
	},
	"new-organization": func(t *testing.T, of *tenant) string {
		return of.world.operate(t, "POST", "/v1/organizations", map[string]any{"name": "used up", "tier": "indie"}).get("id")
	},
	"new-project": func(t *testing.T, of *tenant) string {
		return of.world.operate(t, "POST", "/v1/projects", map[string]any{"organization": of.things["organization"], "name": "used up"}).get("id")
	},
	"new-token": func(t *testing.T, of *tenant) string {
		return of.token(t, "x:y").get("id")
	},
	"new-member": func(t *testing.T, of *tenant) string {
		return of.member(t, "viewer", "m"+strings.ToLower(rand.Text())+"@example.com")
	},
	"new-session": func(t *testing.T, of *tenant) string {
		email := "m" + strings.ToLower(rand.Text()) + "@example.com"
		member := of.member(t, "viewer", email)
		of.world.signIn(t, email)
		var list struct{ Items []struct{ ID string } }
		got := of.world.operate(t, "GET", "/v1/sessions?member="+member, nil)
		if err := json.Unmarshal([]byte(got.text), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("the sessions of %s: %s", member, got.text)
		}
		return list.Items[0].ID
	},
	"new-invitation": func(t *testing.T, of *tenant) string {
		return of.world.operate(t, "POST", "/v1/invitations", map[string]any{
			"organization": of.things["organization"], "email": "i" + strings.ToLower(rand.Text()) + "@example.com", "role": "viewer",
		}).get("id")
	},
	"new-webhook":  func(t *testing.T, of *tenant) string { return of.webhook(t).get("id") },
	"new-delivery": func(t *testing.T, of *tenant) string { return of.delivery(t) },
	"new-search": func(t *testing.T, of *tenant) string {
		return of.alert(t, of.search(t, of.things["home-project"]))
	},
	"new-alert": func(t *testing.T, of *tenant) string { return of.alertOnErrors(t) },
	"new-map": func(t *testing.T, of *tenant) string {
		return of.world.send(t, request{method: "POST", path: "/v1/projects/" + of.things["home-project"] + "/source-maps?name=app.js&release=" + rand.Text(),
			body: sourceMap, header: map[string]string{"X-Api-Key": of.key, "Content-Type": "application/json"}}).get("id")
	},
	"new-bare-search": func(t *testing.T, of *tenant) string { return of.search(t, of.things["home-project"]) },
	"new-email":       func(*testing.T, *tenant) string { return "m" + strings.ToLower(rand.Text()) + "@example.com" },
}

// tenant makes an organization, with a project, a key, a token and an error group.
func (w *world) tenant(t *testing.T, name string) *tenant {
	t.Helper()
	made := &tenant{world: w, name: name, things: map[string]string{}}
	made.things["organization"] = w.operate(t, "POST", "/v1/organizations", map[string]any{"name": name, "tier": "scale"}).get("id")
	made.things["project"] = w.operate(t, "POST", "/v1/projects",
		map[string]any{"organization": made.things["organization"], "name": name + "'s shop"}).get("id")
	key := made.issue(t, nil)
	made.things["key"], made.key = key.get("id"), key.get("key")
	made.things["token"] = made.token(t, "x:y").get("id")
	made.things["member"] = made.member(t, "viewer", "m"+strings.ToLower(rand.Text())+"@example.com")
	made.things["home"] = made.things["organization"] // stays what it is where a test names another organization
	made.things["home-project"] = made.things["project"]
	made.things["webhook"] = made.webhook(t).get("id")
	made.things["home-webhook"] = made.things["webhook"]
	made.things["second"] = w.operate(t, "POST", "/v1/projects",
		map[string]any{"organization": made.things["organization"], "name": name + "'s other shop"}).get("id")
	second := w.operate(t, "POST", "/v1/api-keys", map[string]any{"project": made.things["second"], "environment": "prod", "name": name + "'s other key"})
	made.things["group"] = made.group(t, made.things["project"], made.key)
	made.things["entry"] = made.entry(t)
	made.things["second-group"] = made.group(t, made.things["second"], second.get("key"))
	made.things["search"], made.things["second-search"] = made.alert(t, made.search(t, made.things["project"])), made.search(t, made.things["second"])
	made.things["alert"] = made.alertOnErrors(t)
	made.rules(t)
	made.things["grant"] = w.operate(t, "POST", "/v1/organizations/"+made.things["organization"]+"/grants", map[string]any{"amount": 1, "reason": name + "'s grant"}).get("id")
	return made
}

// webhook makes a webhook with a non-existent endpoint.
func (of *tenant) webhook(t *testing.T) answer {
	t.Helper()
	return of.world.operate(t, "POST", "/v1/organizations/"+of.things["home"]+"/webhooks",
		map[string]any{"url": "https://hooks.invalid/weir", "events": []string{"quota.exhausted", "error_group.created"}})
}

// delivery triggers a delivery to the tenant's webhook.
func (of *tenant) delivery(t *testing.T) string {
	t.Helper()
	return of.world.operate(t, "POST", "/v1/organizations/"+of.things["home"]+"/webhooks/"+of.things["home-webhook"]+"/test", nil).get("id")
}

// search saves a search of a project, once it is known everywhere.
func (of *tenant) search(t *testing.T, project string) (id string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		got := of.world.send(t, request{method: "POST", path: "/v1/searches", body: fmt.Sprintf(`{"name":"%s of %s","project":"%s"}`, rand.Text(), of.name, project),
			header: map[string]string{"X-Api-Key": of.key, "Content-Type": "application/json"}})
		if id = got.get("id"); got.status != http.StatusCreated {
			return fmt.Errorf("POST /v1/searches: %d %s", got.status, got.text)
		}
		return nil
	})
	return id
}

// alert sets an alert on a saved search, and returns the id of that.
func (of *tenant) alert(t *testing.T, search string) string {
	t.Helper()
	got := of.world.send(t, request{method: "PUT", path: "/v1/searches/" + search + "/alert",
		body:   `{"every_seconds":60,"window_seconds":60,"condition":"more_than","threshold":1}`,
		header: map[string]string{"X-Api-Key": of.key, "Content-Type": "application/json"}})
	if got.status != http.StatusOK {
		t.Fatalf("an alert on %s: %d %s", search, got.status, got.text)
	}
	return search
}

// rules sets the rules of the tenant's project.
func (of *tenant) rules(t *testing.T) {
	t.Helper()
	for noun, text := range map[string]string{"error-rules": "scrub email", "ingest-rules": "drop never-sent"} {
		got := of.world.send(t, request{method: "PUT", path: "/v1/projects/" + of.things["home-project"] + "/" + noun,
			body: `{"rules":"` + text + `"}`, header: map[string]string{"X-Api-Key": of.key, "Content-Type": "application/json"}})
		if got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", noun, got.status, got.text)
		}
	}
}

// alertOnErrors sets an alert on the errors of the tenant's project.
func (of *tenant) alertOnErrors(t *testing.T) string {
	t.Helper()
	got := of.world.send(t, request{method: "POST", path: "/v1/projects/" + of.things["home-project"] + "/error-alerts",
		body: `{"name":"Errors of ` + of.name + `","triggers":["new"]}`, header: map[string]string{"X-Api-Key": of.key, "Content-Type": "application/json"}})
	if got.status != http.StatusCreated {
		t.Fatalf("an alert on errors: %d %s", got.status, got.text)
	}
	return got.get("id")
}

// issue makes an API key of prod, which expires at an instant, if given.
func (of *tenant) issue(t *testing.T, expires *time.Time) answer {
	t.Helper()
	wanted := map[string]any{"project": of.things["project"], "environment": "prod", "name": of.name + "'s key"}
	if expires != nil {
		wanted["expires_at"] = expires.UTC().Format(time.RFC3339Nano)
	}
	return of.world.operate(t, "POST", "/v1/api-keys", wanted)
}

func (of *tenant) token(t *testing.T, scopes ...string) answer {
	t.Helper()
	return of.world.operate(t, "POST", "/v1/service-tokens",
		map[string]any{"organization": of.things["organization"], "name": of.name + "'s token", "scopes": scopes})
}

// member adds a member and returns its id.
func (of *tenant) member(t *testing.T, role, email string) string {
	t.Helper()
	return of.world.operate(t, "POST", "/v1/members", map[string]any{
		"organization": of.things["organization"], "email": email, "name": of.name + "'s " + role, "role": role, "password": password,
	}).get("id")
}

// signIn signs a member in and returns the session's cookie.
func (w *world) signIn(t *testing.T, email string) *http.Cookie {
	t.Helper()
	got := w.send(t, request{method: "POST", path: "/console/sign-in", body: url.Values{"email": {email}, "password": {password}}.Encode(),
		header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
	for _, cookie := range got.cookies {
		if cookie.Name == identity.SessionCookie && cookie.Value != "" {
			return cookie
		}
	}
	t.Fatalf("sign in as %s: %d %s", email, got.status, got.text)
	return nil
}

// logs is a body for POST /v1/logs with an error of the named.
func logs(name string) string {
	entry, _ := json.Marshal(map[string]any{"timestamp": "2026-11-21T09:30:00Z", "level": "error", "message": name + " failed",
		"error": map[string]any{"type": name + "Error", "message": name + " has a secret", "stack_trace": []string{"at a (/srv/a.js:1:1)"}}})
	return `{"logs":[` + string(entry) + `]}`
}

// group sends an error with a key of a project and returns the id of its group.
func (of *tenant) group(t *testing.T, project, secret string) (id string) {
	t.Helper()
	key := map[string]string{"X-Api-Key": secret}
	testenv.Eventually(t, func() error {
		got := of.world.send(t, request{method: "POST", path: "/v1/logs", body: logs(of.name), header: key})
		if got.status != http.StatusOK {
			return fmt.Errorf("POST /v1/logs: %d %s", got.status, got.text)
		}
		return nil
	})
	testenv.Eventually(t, func() error {
		got := of.world.send(t, request{method: "GET", path: "/v1/projects/" + project + "/error-groups", header: key})
		var list struct{ Items []struct{ ID string } }
		if err := json.Unmarshal([]byte(got.text), &list); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("no group yet: %d %s", got.status, got.text)
		}
		id = list.Items[0].ID
		return nil
	})
	return id
}

// entry returns the id of the entry of the tenant's group, once it is stored.
func (of *tenant) entry(t *testing.T) (id string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		got := of.world.send(t, request{method: "GET", path: "/v1/logs?project=" + of.things["project"], header: map[string]string{"X-Api-Key": of.key}})
		var list struct{ Items []struct{ ID string } }
		if err := json.Unmarshal([]byte(got.text), &list); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("no entry yet: %d %s", got.status, got.text)
		}
		id = list.Items[0].ID
		return nil
	})
	return id
}

// named returns the value for a name.
var named = regexp.MustCompile(`\{([a-z-]+)\}`)

// fill replaces the names in a text by the tenant's things; a thing
// that is used up is made once for all its places.
func (of *tenant) fill(t *testing.T, texts ...string) []string {
	t.Helper()
	made := map[string]string{}
	filled := make([]string, len(texts))
	for i, text := range texts {
		filled[i] = named.ReplaceAllStringFunc(text, func(word string) string {
			name := strings.Trim(word, "{}")
			if made[name] == "" {
				made[name] = of.thing(t, name)
			}
			return made[name]
		})
	}
	return filled
}

func (of *tenant) thing(t *testing.T, name string) string {
	t.Helper()
	if id, known := of.things[name]; known {
		return id
	}
	maker, known := makers[name]
	if !known {
		t.Fatalf("there is no thing {%s}: add it to tenant.things or to makers in deploy/isolation/tenant_test.go", name)
	}
	return maker(t, of)
}

// stranger returns an unknown id of the same form.
func stranger(id string) string { return id[:len(id)-4] + "zzzz" }
