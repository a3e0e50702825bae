//go:build browser

package browser

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/allinone/allinonetest"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A world is an organization with some of everything.
type world struct {
	email, password string
	organization    string
	project         string
	key             client.APIKey
	token           client.ServiceToken
	group           string // an error group
	passkey         string
	member          string // another than the signed-in one
	invitation      string // still open
	webhook         string
	search          string // saved, with an alert
	alert           string // on errors
}

// Texts are those that people and programs enter.
type texts struct {
	organization, member, project, key, token, reason   string
	message, environment, errorType, errorMessage, call string
	trace                                               string // its id

	hook   string // address of a webhook
	search string // name of a saved one

	email, invited string // of a viewer, and of a person without an account
}

var plainTexts = texts{
	organization: "Acme", member: "Ada Owner", project: "Checkout", key: "pods in Frankfurt", token: "invoicing", reason: "replaced by another",
	message: "checkout failed", environment: "prod", errorType: "TypeError",
	errorMessage: "Cannot read properties of undefined (reading 'total')", call: "at Cart.total (/srv/shop/src/cart.js:41:13)",
	trace: "5b8efff798038103d269b633813fc60c",
	hook:  "https://hooks.invalid/weir", search: "Checkout fails", email: "bob@acme.example", invited: "eve@acme.example",
}

// longTexts have no place to break them, and Weir's maximal length.
func longTexts() texts {
	name, host := strings.Repeat("W", 200), strings.Repeat("w", 60)+".example"
	return texts{
		organization: name, member: name, project: name, key: name, token: name, reason: strings.Repeat("R", 500),
		message: strings.Repeat("M", 1900), environment: strings.Repeat("E", 64), errorType: strings.Repeat("T", 300),
		errorMessage: strings.Repeat("X", 2000), call: "at " + strings.Repeat("c", 300) + " (/srv/" + strings.Repeat("f", 300) + ".js:41:13)",
		trace: strings.Repeat("t", 200),
		hook:  "https://hooks.invalid/" + strings.Repeat("h", 1900), search: strings.Repeat("S", 80), email: strings.Repeat("b", 64) + "@" + host, invited: strings.Repeat("e", 64) + "@" + host,
	}
}

// furnish creates an organization whose pages have something to show.
func (in installation) furnish(t *testing.T, say texts) world {
	t.Helper()
	w := world{email: "ada@acme.example", password: "violet kettle drums quietly"}
	organization := in.addOwner(t, say.organization, say.member, w.email, w.password)
	project, err := in.api.CreateProject(t.Context(), in.token, organization, say.project)
	testenv.Must(t, err)
	w.organization, w.project = organization, project.ID
	w.key, err = in.api.CreateAPIKey(t.Context(), in.token, project.ID, "prod", say.key)
	testenv.Must(t, err)
	spare, err := in.api.CreateAPIKey(t.Context(), in.token, project.ID, "staging", "an old laptop")
	testenv.Must(t, err)
	w.token, err = in.api.CreateServiceToken(t.Context(), in.token, organization, say.token, "billing:read")
	testenv.Must(t, err)
	testenv.Must(t, in.api.RevokeAPIKey(t.Context(), in.token, spare.ID, say.reason))
	in.send(t, w.key.Key, entry{Level: "info", Message: "order 4711 was paid"}, entry{Level: "warn", Message: "the card reader is slow"},
		entry{Level: "error", Message: say.message, Environment: say.environment, Metadata: map[string]any{"trace_id": say.trace}, Error: &failure{
			Type: say.errorType, Message: say.errorMessage,
			Frames: []string{say.call, "at checkout (/srv/shop/src/checkout.js:88:20)", "at next (/srv/shop/node_modules/express/router.js:280:10)",
				"at handle (/srv/shop/node_modules/express/layer.js:95:5)", "at dispatch (/srv/shop/node_modules/express/route.js:119:3)"},
		}})
	in.reject(t, w.key.Key, project.ID, entry{Timestamp: time.Now().UTC(), Level: say.environment, Message: say.message})
	w.group = in.awaitGroup(t, w.key.Key, project.ID)
	w.member = in.create(t, "/members", map[string]string{
		"organization": organization, "email": say.email, "name": say.member, "role": "viewer", "password": w.password,
	})
	hooks := "/organizations/" + organization + "/webhooks"
	w.webhook = in.create(t, hooks, map[string]any{"url": say.hook, "events": []string{"quota.threshold_reached", "quota.exhausted", "error_group.created"}})
	in.create(t, hooks+"/"+w.webhook+"/test", nil)
	said := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(say.message)
	w.search = in.save(t, w.key.Key, map[string]any{"name": say.search, "project": project.ID, "q": `checkout OR "` + said + `"`, "last": "1h"})
	w.alert = in.call(t, "POST", "/projects/"+project.ID+"/error-alerts", "x-api-key", w.key.Key, map[string]any{"name": say.search, "triggers": []string{"new", "regressed"},
		"environments": []string{say.environment}, "mail_roles": []string{"owner"}})
	rules := "# " + say.search + "\nlibrary path:src/generated/*\nscrub email"
	_, err = in.api.SetRules(t.Context(), w.key.Key, project.ID, client.RulesChange{Rules: &rules, Note: say.search})
	testenv.Must(t, err)
	w.invitation = in.create(t, "/invitations", map[string]string{"organization": organization, "email": say.invited, "role": "developer"})
	return w
}

// save saves a search with an alert, and returns its id.
func (in installation) save(t *testing.T, key string, search map[string]any) string {
	t.Helper()
	id := in.call(t, "POST", "/searches", "x-api-key", key, search)
	in.call(t, "PUT", "/searches/"+id+"/alert", "x-api-key", key,
		map[string]any{"every_seconds": 60, "window_seconds": 3600, "condition": "more_than", "threshold": 100, "mail_roles": []string{"owner"}})
	return id
}

// create creates a thing as the operator and returns its id.
func (in installation) create(t *testing.T, path string, thing any) string {
	t.Helper()
	return in.call(t, "POST", path, "Authorization", "Bearer "+in.token, thing)
}

// call sends a thing, and returns the id in the answer.
func (in installation) call(t *testing.T, method, path, header, credential string, thing any) string {
	t.Helper()
	body, err := json.Marshal(thing)
	testenv.Must(t, err)
	answer, err := in.api.Call(t.Context(), client.Request{Method: method, Path: path, Body: body,
		Header: map[string]string{header: credential, "Content-Type": "application/json"}})
	testenv.Must(t, err)
	var made struct{ ID, Search string }
	testenv.Must(t, json.Unmarshal(answer.Body, &made))
	if made.ID+made.Search == "" {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return made.ID
}

// addresses are those of a world's pages whose route has a parameter.
func (w world) addresses() map[string]string {
	const settings = "/console/settings/"
	return map[string]string{
		"/console/*":                                 "/console/no-such-page",
		"/console/errors/{group}":                    "/console/errors/" + w.group,
		"/console/errors/{group}/occurrences":        "/console/errors/" + w.group + "/occurrences",
		"/console/errors/alerts/{alert}":             "/console/errors/alerts/" + w.alert,
		"/console/logs/searches/{id}/edit":           "/console/logs/searches/" + w.search + "/edit",
		"/console/logs/searches/{id}/alert":          "/console/logs/searches/" + w.search + "/alert",
		settings + "projects/{id}":                   settings + "projects/" + w.project,
		settings + "projects/{id}/delete":            settings + "projects/" + w.project + "/delete",
		settings + "api-keys/{id}":                   settings + "api-keys/" + w.key.ID,
		settings + "api-keys/{id}/rotate":            settings + "api-keys/" + w.key.ID + "/rotate",
		settings + "api-keys/{id}/edit":              settings + "api-keys/" + w.key.ID + "/edit",
		settings + "api-keys/{id}/revoke":            settings + "api-keys/" + w.key.ID + "/revoke",
		settings + "service-tokens/{id}/revoke":      settings + "service-tokens/" + w.token.ID + "/revoke",
		settings + "webhooks/{id}":                   settings + "webhooks/" + w.webhook,
		settings + "webhooks/{id}/edit":              settings + "webhooks/" + w.webhook + "/edit",
		settings + "webhooks/{id}/rotate":            settings + "webhooks/" + w.webhook + "/rotate",
		settings + "webhooks/{id}/delete":            settings + "webhooks/" + w.webhook + "/delete",
		settings + "account/passkeys/{id}/remove":    settings + "account/passkeys/" + w.passkey + "/remove",
		settings + "members/{id}":                    settings + "members/" + w.member,
		settings + "members/{id}/remove":             settings + "members/" + w.member + "/remove",
		settings + "members/{id}/reset":              settings + "members/" + w.member + "/reset",
		settings + "members/invitations/{id}/resend": settings + "members/invitations/" + w.invitation + "/resend",
		settings + "members/invitations/{id}/revoke": settings + "members/invitations/" + w.invitation + "/revoke",
	}
}

// addOwner creates an organization with one member, its owner.
func (in installation) addOwner(t *testing.T, name, member, email, password string) (organization string) {
	t.Helper()
	created, err := in.api.CreateOrganization(t.Context(), in.token, name, "scale")
	testenv.Must(t, err)
	in.addMember(t, created.ID, member, "owner", email, password)
	return created.ID
}

// acme creates the organization Acme with Ada as its owner and one
// project, and returns the ids of both.
func (in installation) acme(t *testing.T) (organization, project string) {
	t.Helper()
	created, err := in.api.CreateOrganization(t.Context(), in.token, "Acme", "indie")
	testenv.Must(t, err)
	in.addMember(t, created.ID, "Ada Owner", "owner", "ada@acme.example", ownerPassword)
	checkout, err := in.api.CreateProject(t.Context(), in.token, created.ID, "Checkout")
	testenv.Must(t, err)
	return created.ID, checkout.ID
}

func (in installation) addMember(t *testing.T, organization, name, role, email, password string) {
	t.Helper()
	testenv.Must(t, in.api.CreateMember(t.Context(), in.token, client.NewMember{
		Organization: organization, Email: email, Name: name, Role: role, Password: password,
	}))
}

// An entry is one log entry of now.
type entry struct {
	Timestamp   time.Time      `json:"timestamp"`
	Level       string         `json:"level"`
	Message     string         `json:"message"`
	Environment string         `json:"environment,omitempty"`
	Error       *failure       `json:"error,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

type failure struct {
	Type    string   `json:"type"`
	Message string   `json:"message"`
	Frames  []string `json:"stack_trace"`
}

// send sends entries with a key, and retries while the new
// organization's quota is unknown.
func (in installation) send(t *testing.T, key string, entries ...entry) {
	t.Helper()
	for i := range entries {
		entries[i].Timestamp = time.Now().UTC()
	}
	body, err := json.Marshal(map[string]any{"logs": entries})
	testenv.Must(t, err)
	accepted, err := in.api.Deliver(t.Context(), key, client.Batch{Body: body, IdempotencyKey: rand.Text()})
	testenv.Must(t, err)
	if accepted.Processed != len(entries) {
		t.Fatalf("accepted %+v of %d", accepted, len(entries))
	}
}

// reject sends an entry that is not valid, and waits until it is listed.
func (in installation) reject(t *testing.T, key, project string, invalid entry) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"logs": []entry{invalid}})
	testenv.Must(t, err)
	if accepted, err := in.api.Post(t.Context(), key, client.Batch{Body: body}); err == nil {
		t.Fatalf("it is valid: %+v", accepted)
	}
	testenv.Eventually(t, func() error {
		list, err := client.Collect(t.Context(), in.api, client.ByKey(key), "/projects/"+project+"/rejected-entries", url.Values{}, 1)
		if err == nil && len(list) == 0 {
			err = errors.New("no rejected entry is listed")
		}
		return err
	})
}

// awaitGroup waits for the first error group of a project, and for its entry to be stored.
func (in installation) awaitGroup(t *testing.T, key, project string) string {
	t.Helper()
	for deadline := time.Now().Add(testenv.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		groups, err := in.api.ErrorGroups(t.Context(), key, project)
		testenv.Must(t, err)
		stored, err := in.api.Logs(t.Context(), key, client.LogsQuery{Project: project, Levels: []string{"error"}})
		testenv.Must(t, err)
		if len(groups) > 0 && len(stored.Items) > 0 {
			return groups[0].ID
		}
	}
	t.Fatalf("no error group within %s", testenv.Patience)
	return ""
}

// An installation is all of Weir in this process, empty, served over HTTPS.
type installation struct {
	app    *allinone.App
	origin string // such as https://localhost:41234
	api    *client.Client
	token  string // the operator's

	printed *bytes.Buffer // standard output during the start
}

func newInstallation(t *testing.T) installation {
	t.Helper()
	return newGround(t).start(t)
}

// A ground is what an installation leaves behind, and the next one begins with.
type ground struct {
	dataDir  string
	database httpapi.Secret
	brokers  []string
}

func newGround(t *testing.T) ground {
	t.Helper()
	return ground{t.TempDir(), httpapi.Secret(postgrestest.URL(t)), kafkatest.Brokers(t)}
}

// start runs an installation until the test ends.
func (g ground) start(t *testing.T) installation {
	t.Helper()
	modules, err := allinone.ModulesFromEnvironment()
	testenv.Must(t, err)
	var printed bytes.Buffer
	modules.Tenants.Output, modules.Tenants.CheapPasswords = &printed, true
	app, err := allinone.New(t.Context(), allinone.Config{
		Listen: "localhost:0", DataDir: g.dataDir, DatabaseURL: g.database, Brokers: g.brokers,
		Modules: modules, NoDemo: true,
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	testenv.Must(t, err)
	allinonetest.Run(t, app)
	env := app.Env()
	api, err := client.New(env.BaseURL, env.CAFile, 4)
	testenv.Must(t, err)
	t.Cleanup(api.Close)
	return installation{app: app, origin: strings.TrimSuffix(env.BaseURL, "/v1"), api: api, token: env.OperatorToken, printed: &printed}
}
