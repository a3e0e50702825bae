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
	"github.com/weirlog/weir/grouping/internal/groups"
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
func newAPI(t *testing.T) nethttp.Handler { return newAPIAt(t, time.Now) }

func newAPIAt(t *testing.T, clock func() time.Time) nethttp.Handler { return newAPIFor(t, clock, "") }

// newAPIFor is for a key of an access.
func newAPIFor(t *testing.T, clock func() time.Time, access string) nethttp.Handler {
	t.Helper()
	service := groupingtest.With(t, func(config *groups.Config) { config.Clock = clock })
	credentials, projects := identity.NewCredentials(time.Now), identity.NewDirectory()
	issued, _ := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "acme", Project: "shop",
		State: contract.CredentialActive, Version: 1, Access: access})
	if err := projects.Apply(contract.TypeProjectCreated, []byte(`{"organization":"acme","project":"cart","name":"Cart"}`)); err != nil {
		t.Fatal(err)
	}
	if err := credentials.Apply(contract.CredentialKey(key), issued); err != nil {
		t.Fatal(err)
	}
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now})
	guard := identity.NewGuard(identity.GuardConfig{Credentials: credentials, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	(&http.API{Service: service, Guard: guard, Projects: projects}).Mount(router)
	return routetest.Handler(router)
}

// get returns the status and the body's members.
func get(t *testing.T, api nethttp.Handler, path string) (int, map[string]any) {
	t.Helper()
	return send(t, api, nethttp.MethodGet, path, "", "")
}

// send sends a request with a body and an Idempotency-Key, unless they are empty.
func send(t *testing.T, api nethttp.Handler, method, path, body, idempotencyKey string) (int, map[string]any) {
	t.Helper()
	return sendWith(t, api, method, path, body, nethttp.Header{"Idempotency-Key": {idempotencyKey}})
}

func sendWith(t *testing.T, api nethttp.Handler, method, path, body string, header nethttp.Header) (int, map[string]any) {
	t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	for name, values := range header {
		if values[0] != "" {
			request.Header[name] = values
		}
	}
	request.Header.Set("X-Api-Key", key)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, members := httptest.NewRecorder(), map[string]any{}
	api.ServeHTTP(answer, request)
	if err := json.Unmarshal(answer.Body.Bytes(), &members); err != nil {
		t.Fatalf("%s %s %.100s: %d %s", method, path, body, answer.Code, answer.Body)
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

// What does not exist, or is foreign, is not found; what is invalid is refused.
func TestRefusals(t *testing.T) {
	api := newAPI(t)
	for path, want := range map[string]int{
		"/v1/projects/lair/error-groups": 404, "/v1/error-groups/grp_0": 404, "/v1/error-groups/%00": 404, "/v1/projects/cart/error-groups": 200,
		"/v1/projects/shop/error-groups?level=loud": 400, "/v1/projects/shop/error-groups?levels=error": 400, "/v1/error-groups/grp_0?limit=1": 400,
	} {
		if status, body := get(t, api, path); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, body, want)
		}
	}
}

// A key of one project reads that project, and decides nothing; others look as if
// they did not exist. A key that may only write reads nothing.
func TestKeysThatReadLess(t *testing.T) {
	for access, want := range map[string][4]int{contract.AccessFull: {200, 200, 200, 200}, contract.AccessProject: {200, 200, 404, 403}, contract.AccessWrite: {403, 403, 403, 403}} {
		api := newAPIFor(t, time.Now, access)
		group := "/v1/error-groups/grp_0"
		if access != contract.AccessWrite {
			group = alpha(t, api)
		}
		for i, of := range [][3]string{
			{"GET", "/v1/projects/shop/error-groups"}, {"GET", group}, {"GET", "/v1/projects/cart/error-groups"}, {"PATCH", group, `{"status":"resolved"}`},
		} {
			if status, body := send(t, api, of[0], of[1], of[2], ""); status != want[i] {
				t.Errorf("with access %s, %s %s: %d %v, want %d", access, of[0], of[1], status, body, want[i])
			}
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

// The numbers of a group are those of its errors, by hour and day, as JSON and CSV.
func TestCounts(t *testing.T) {
	api := newAPIAt(t, func() time.Time { return time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC) })
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=alpha")
	alpha := list["items"].([]any)[0].(map[string]any)
	recent := alpha["recent"].(map[string]any)
	if hours := recent["hours"].([]any); len(hours) != 24 || hours[1] != 2.0 || recent["from"] != "2026-11-21T11:00:00Z" || recent["before"] != 0.0 || alpha["spike"] != nil {
		t.Errorf("%v", alpha)
	}
	path := "/v1/error-groups/" + alpha["id"].(string) + "/counts"
	for query, want := range map[string]struct {
		items int
		count float64
	}{
		"?from=2026-11-21T11:30:00Z&to=2026-11-21T12:00:00.5Z&by=hour": {2, 2}, "?from=2026-11-21T11:30:00Z&to=2026-11-21T12:00:00Z&by=hour": {1, 0},
		"?from=2026-11-20T11:30:00Z&to=2026-11-22T00:00:00Z": {2, 2}, "?by=hour": {24, 2}, "": {30, 2}, "?from=2000-01-01T00:00:00Z": {91, 2}, "?to=2000-01-01T00:00:00Z": {0, 0},
	} {
		status, body := get(t, api, path+query)
		if items := body["items"].([]any); status != 200 || len(items) != want.items || body["count"] != want.count || body["next_cursor"] != nil {
			t.Errorf("%s: %d %v", query, status, body)
		}
	}
	_, body := get(t, api, path)
	tags := body["tags"].([]any)
	if prod := tags[0].(map[string]any); len(tags) != 1 || prod["tag"] != "environment" || prod["values"].([]any)[0].(map[string]any)["count"] != 2.0 || body["users"] != 0.0 {
		t.Errorf("%v", body)
	}
	request := httptest.NewRequest(nethttp.MethodGet, path+"?from=2026-11-21T00:00:00Z&to=2026-11-21T01:00:00Z", nil)
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Accept", httpapi.TypeCSV)
	answer := httptest.NewRecorder()
	if api.ServeHTTP(answer, request); answer.Body.String() != "at,count\n2026-11-21T00:00:00Z,2\n" {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	for query, want := range map[string]int{"?by=week": 400, "?from=x": 400, "?from=2026-11-21T01:00:00Z&to=2026-11-21T00:00:00Z": 400} {
		if status, body := get(t, api, path+query); status != want {
			t.Errorf("%s: %d %v", query, status, body)
		}
	}
	if status, _ := get(t, api, "/v1/error-groups/grp_0/counts"); status != 404 {
		t.Errorf("of a group that does not exist: %d", status)
	}
}

// A list has the order that is asked for.
func TestSort(t *testing.T) {
	api := newAPI(t)
	for by, first := range map[string]string{"": "AlphaError", "last_seen": "AlphaError", "first_seen": "BetaError", "count": "AlphaError", "users": ""} {
		status, list := get(t, api, "/v1/projects/shop/error-groups?limit=1&sort="+by)
		if got := list["items"].([]any)[0].(map[string]any)["type"]; status != 200 || first != "" && got != first || list["next_cursor"] == nil {
			t.Errorf("by %s: %d %v", by, status, list)
		}
		if _, rest := get(t, api, "/v1/projects/shop/error-groups?limit=1&sort="+by+"&cursor="+list["next_cursor"].(string)); len(rest["items"].([]any)) != 1 || rest["next_cursor"] != nil {
			t.Errorf("the next by %s: %v", by, rest)
		}
	}
	if status, _ := get(t, api, "/v1/projects/shop/error-groups?sort=age"); status != 400 {
		t.Errorf("by age: %d", status)
	}
}

// A project says where the metadata of its entries has what errors are counted by.
func TestSettings(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC)
	api := newAPIAt(t, func() time.Time { return now })
	path := "/v1/projects/shop/error-settings"
	if status, set := get(t, api, path); status != 200 || len(set["release"].([]any)) != 3 || set["since"] != nil || set["actor"] != nil {
		t.Errorf("%d %v", status, set)
	}
	put := func(body string) (int, map[string]any) { return send(t, api, nethttp.MethodPut, path, body, "") }
	for body, want := range map[string]int{
		`{"user":["a","b","c","d"]}`: 400, `{"user":[""]}`: 400, `{"host":["a..b"]}`: 400, `{"release":["` + strings.Repeat("x", 101) + `"]}`: 400, `{"users":["id"]}`: 400,
		`{"archive_after_days":-1}`: 400, `{"archive_after_days":366}`: 400, `{"if_since":"2026-11-22T10:30:05Z"}`: 409,
	} {
		if status, answer := put(body); status != want {
			t.Errorf("%s: %d %v", body, status, answer)
		}
	}
	status, set := put(`{"user":["account.id"]}`)
	if status != 200 || set["since"] != "2026-11-22T10:30:05Z" || set["actor"] != "key_1" || set["release"] != nil {
		t.Errorf("%d %v", status, set)
	}
	if _, next := put(`{"user":["account.id"],"archive_after_days":30,"if_since":"2026-11-22T10:30:05Z"}`); next["since"] != "2026-11-22T10:30:05.000001Z" || next["archive_after_days"] != 30.0 {
		t.Errorf("another setting at the same time: %v", next)
	}
	if status, refused := put(`{"if_since":"2026-11-22T10:30:05Z"}`); status != 409 || refused["code"] != "version_conflict" {
		t.Errorf("the second of two: %d %v", status, refused)
	}
	_, set = put(`{"user":["account.id"]}`)
	now = now.Add(time.Hour)
	if _, again := put(`{"user":["account.id"]}`); again["since"] != set["since"] {
		t.Errorf("the same again: %v", again)
	}
	if _, read := get(t, api, path); read["since"] != set["since"] || read["user"].([]any)[0] != "account.id" {
		t.Errorf("%v", read)
	}
}
