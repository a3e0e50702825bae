package http_test

import (
	"encoding/json"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

var key = identity.APIKeyPrefix + strings.Repeat("a", 48)

// newAPI is the routes on groups of AlphaError and
// BetaError in project shop, and an API key of it.
func newAPI(t *testing.T) nethttp.Handler {
	t.Helper()
	credentials, projects := identity.NewCredentials(time.Now), identity.NewDirectory()
	issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "acme", Project: "shop",
		State: contract.CredentialActive, Version: 1})
	if err := credentials.Apply(contract.CredentialKey(key), issued); err != nil {
		t.Fatal(err)
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	(&http.API{Service: groupingtest.New(t), Guard: guard, Projects: projects}).Mount(router)
	return routetest.Handler(router)
}

// get returns the status and the body's members.
func get(t *testing.T, api nethttp.Handler, path string) (int, map[string]any) {
	t.Helper()
	request := httptest.NewRequest(nethttp.MethodGet, path, nil)
	request.Header.Set("X-Api-Key", key)
	answer, members := httptest.NewRecorder(), map[string]any{}
	api.ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), &members); err != nil {
		t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	return answer.Code, members
}

// The list has the groups, the last seen first,
// in pages and filtered; each links to its group.
func TestGroups(t *testing.T) {
	api := newAPI(t)
	status, first := get(t, api, "/v1/projects/shop/error-groups?limit=1")
	alpha := first["items"].([]any)[0].(map[string]any)
	if status != 200 || alpha["type"] != "AlphaError" || alpha["count"] != 2.0 || alpha["levels"].([]any)[0] != "error" {
		t.Errorf("%d %v", status, first)
	}
	_, second := get(t, api, "/v1/projects/shop/error-groups?limit=1&cursor="+first["next_cursor"].(string))
	if items := second["items"].([]any); len(items) != 1 || items[0].(map[string]any)["type"] != "BetaError" || second["next_cursor"] != nil {
		t.Errorf("second page %v", second)
	}
	if _, found := get(t, api, "/v1/projects/shop/error-groups?q=beta"); len(found["items"].([]any)) != 1 {
		t.Errorf("found %v", found)
	}
	status, group := get(t, api, "/v1/error-groups/"+alpha["id"].(string))
	why := group["why"].(map[string]any)
	if status != 200 || len(group["occurrences"].([]any)) != 2 || why["level"] != "site" || why["rule"] == "" || group["similar"] == nil {
		t.Errorf("%d %v", status, group)
	}
}

// Similar groups have a list of their own.
func TestSimilar(t *testing.T) {
	api := newAPI(t)
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=alpha")
	alpha := list["items"].([]any)[0].(map[string]any)["id"].(string)
	status, similar := get(t, api, "/v1/error-groups/"+alpha+"/similar")
	if items := similar["items"].([]any); status != 200 || len(items) != 1 || items[0].(map[string]any)["type"] != "BetaError" || similar["next_cursor"] != nil {
		t.Errorf("%d %v, want the other group, which has the same call", status, similar)
	}
	if status, _ := get(t, api, "/v1/error-groups/grp_0/similar"); status != 404 {
		t.Errorf("of a group that does not exist: %d", status)
	}
}

// What does not exist, or is foreign, is
// not found; what is invalid is refused.
func TestRefusals(t *testing.T) {
	api := newAPI(t)
	for path, want := range map[string]int{
		"/v1/projects/lair/error-groups": 404, "/v1/error-groups/grp_0": 404, "/v1/error-groups/%00": 404,
		"/v1/projects/shop/error-groups?level=loud": 400, "/v1/projects/shop/error-groups?cursor=x": 400, "/v1/error-groups/grp_0?limit=1": 400,
	} {
		if status, body := get(t, api, path); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, body, want)
		}
	}
}

// The OpenAPI description is served beside the routes.
func TestDescription(t *testing.T) {
	api := newAPI(t)
	for _, path := range []string{"/v1/openapi.json", "/v1/grouping/openapi.json"} {
		if status, described := get(t, api, path); status != 200 || described["openapi"] == nil {
			t.Errorf("%s: %d %v", path, status, described)
		}
	}
}
