package http

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// newKeptRoutes serves saved searches and rules of org_1 to a key of it, and to
// another of its project alone.
func newKeptRoutes(t *testing.T) http.Handler {
	t.Helper()
	clock := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	credentials, directory := identity.NewCredentials(clock), identity.NewDirectory()
	value, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", State: contract.CredentialActive})
	if err != nil || credentials.Apply(contract.CredentialKey(secret), value) != nil {
		t.Fatal(err)
	}
	value, err = json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_2", Organization: "org_1", Project: "prj_1",
		State: contract.CredentialActive, Access: contract.AccessProject})
	if err != nil || credentials.Apply(contract.CredentialKey(narrow), value) != nil {
		t.Fatal(err)
	}
	created, err := json.Marshal(contract.ProjectCreated{Organization: "org_1", Project: "prj_1", Name: "Shop"})
	if err != nil || directory.Apply(contract.TypeProjectCreated, created) != nil {
		t.Fatal(err)
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: clock})
	httpapi.Describe(router, module.Name, OpenAPI())
	ids := 0
	service := &saved.Service{
		Pool: pgtest.Open(t, postgres.Schema, postgres.Migrations()...), Directory: directory, MaxSearches: 10, MaxAlerts: 10, Publish: bus.SaveNotice,
		Published: func() {}, Clock: clock, NewID: func() string {
			ids++
			return fmt.Sprint(ids)
		},
	}
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: clock})
	reading := router.With(guard.RequireAPIKey())
	found := &searches.Service{Searches: &tape{n: 3}, Directory: directory}
	ruled := &rules.Service{Pool: service.Pool, Searches: found, Turns: rules.NewTurns(1, nil), Save: bus.SaveRules, Saved: func() {}, Clock: clock}
	for _, operation := range slices.Concat(saving(&Saved{service}), ruling(&Rules{ruled, guard})) {
		operation.Mount(reading)
	}
	return openapitest.Handler(t, routetest.Handler(router))
}

// narrow is a key that reads its own project alone.
const narrow = "weir_999999999999999999999999999999999999999999999999"

// A step is a request and its answer.
type step struct {
	send string // method, path, body
	want int
	says string
}

// take takes steps, one after the other.
func take(t *testing.T, routes http.Handler, key string, steps []step) {
	t.Helper()
	for _, step := range steps {
		parts := strings.SplitN(step.send, " ", 3)
		body := strings.Join(parts[2:], "")
		request := httptest.NewRequest(parts[0], parts[1], strings.NewReader(body))
		request.Header.Set("X-Api-Key", key)
		if body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		answer := httptest.NewRecorder()
		if routes.ServeHTTP(answer, request); answer.Code != step.want || !strings.Contains(answer.Body.String(), step.says) {
			t.Errorf("%s: %d %s, want %d %s", step.send, answer.Code, answer.Body, step.want, step.says)
		}
	}
}

// The life of a saved search and its alert.
func TestSavedSearches(t *testing.T) {
	take(t, newKeptRoutes(t), secret, []step{
		{`POST /v1/searches {"name":"Checkout","project":"prj_1","q":"checkout level:error","last":"1h"}`, 201, `"id":"srch_1"`},
		{`POST /v1/searches {"name":"checkout","project":"prj_1"}`, 409, `already`},
		{`POST /v1/searches {"name":"All","q":"level:loud"}`, 400, `"pointer":"/q"`},
		{`POST /v1/searches {"name":"All","levels":["error"],"from":"2026-11-21T12:00:00Z"}`, 201, `"project":""`},
		{`GET /v1/searches?project=prj_2`, 404, `prj_2`},
		{`GET /v1/searches?limit=1`, 200, `"name":"All"`},
		{`GET /v1/searches?name=CHECKOUT`, 200, `"name":"Checkout"`},
		{`GET /v1/searches/srch_1`, 200, `"q":"checkout level:error"`},
		{`GET /v1/searches/srch_x`, 404, `srch_x`},
		{`PUT /v1/searches/srch_1 {"name":"Checkout fails","project":"prj_1","q":"checkout","version":1}`, 200, `"version":2`},
		{`PUT /v1/searches/srch_1 {"name":"Mine","version":1}`, 409, `Somebody else`},
		{`GET /v1/searches/srch_1/alert`, 404, `alert`},
		{`PUT /v1/searches/srch_1/alert {"every_seconds":60,"window_seconds":300,"condition":"fewer_than","threshold":0}`, 400, `/threshold`},
		{`PUT /v1/searches/srch_1/alert {"every_seconds":60,"window_seconds":300,"condition":"fewer_than","threshold":1,"mail_roles":["owner"]}`, 200, `"times":1`},
		{`PUT /v1/searches/srch_1/alert {"every_seconds":60,"window_seconds":300,"condition":"more_than","threshold":1}`, 409, `Somebody else`},
		{`PUT /v1/searches/srch_1/alert {"every_seconds":90,"window_seconds":300,"condition":"more_than","threshold":1,"version":1}`, 200, `"version":2`},
		{`POST /v1/searches/srch_1/alert/mute {"until":"2026-11-22T00:00:00Z"}`, 200, `"muted_until":"2026-11-22T00:00:00Z"`},
		{`POST /v1/searches/srch_1/alert/mute {"until":null}`, 200, `"muted_until":null`},
		{`POST /v1/searches/srch_1/alert/test`, 202, `"state":"ok"`},
		{`POST /v1/searches/srch_1/alert/test`, 409, `minute`},
		{`GET /v1/searches/srch_1/alert/evaluations?changes=true`, 200, `"items":[]`},
		{`GET /v1/searches/srch_1/alert`, 200, `"search":"srch_1"`},
		{`DELETE /v1/searches/srch_1/alert?version=1`, 409, `Somebody else`},
		{`DELETE /v1/searches/srch_1/alert`, 200, `"id":"srch_1"`},
		{`DELETE /v1/searches/srch_1?version=2`, 200, `"name":"Checkout fails"`},
		{`GET /v1/searches/srch_1`, 404, ``},
	})
}
