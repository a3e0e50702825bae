package keys_test

import (
	"crypto/rand"
	"encoding/json"
	"html"
	"io"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A room is the room of keys on its own schema.
type room struct {
	work    *unitofwork.Writer
	service *keys.Service
	pool    *pgxpool.Pool
}

func open(t *testing.T) room {
	t.Helper()
	pool := tenantstest.Open(t)
	work := tenantstest.NewWriter(pool)
	organizations := registry.NewService(work, func(string) tenants.Tier { return "" })
	return room{work, keys.NewService(work, organizations, registry.NewProjects(organizations), func(string) int { return 100 }), pool}
}

func (r room) api(settings chi.Router) {
	tenantstest.Route(settings, keys.NewAPI(tenantstest.API(), r.service).Operations())
}

func (r room) pages(settings chi.Router) {
	keys.NewPages(tenantstest.Pages(), r.service).Mount(settings)
}

// call sends an organization's token's request to the API.
func (r room) call(t *testing.T, organization, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	return tenantstest.CallAPI(t, r.api, organization, method, path, body)
}

// page sends a request of a member of org_a to the pages.
func (r room) page(t *testing.T, role tenants.Role, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return tenantstest.Call(t, r.pages, tenantstest.SignedIn("a", role), method, "/console/settings/api-keys"+path, "", form)
}

const newKey = `{"project":"prj_a","environment":"prod","name":"pods","rate_per_minute":30}`

// A key is shown whole in the answer to its creation alone.
func TestCreate(t *testing.T) {
	r := open(t)
	status, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	secret, _ := made["key"].(string)
	if status != 201 || !regexp.MustCompile(`^weir_[0-9a-f]{48}$`).MatchString(secret) || made["created_by"] != "tok_1" || made["state"] != "active" {
		t.Fatalf("created: %d %v", status, made)
	}
	for _, path := range []string{"/v1/api-keys/" + made["id"].(string), "/v1/api-keys?project=prj_a"} {
		status, found := r.call(t, "org_a", "GET", path, "")
		text, err := json.Marshal(found)
		if err != nil || status != 200 || !strings.Contains(string(text), `"pods"`) || strings.Contains(string(text), secret) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// Invalid requests are refused by field, and what is foreign is not found.
func TestRefusals(t *testing.T) {
	r := open(t)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"no name":               {"POST", "/v1/api-keys", `{"project":"prj_a","environment":"prod"}`, 400, "/name"},
		"too high a limit":      {"POST", "/v1/api-keys", `{"project":"prj_a","environment":"prod","name":"n","rate_per_minute":101}`, 400, "/rate_per_minute"},
		"an empty access":       {"POST", "/v1/api-keys", `{"project":"prj_a","environment":"prod","name":"n","access":""}`, 400, "/access"},
		"an end that is none":   {"POST", "/v1/api-keys", `{"project":"prj_a","environment":"prod","name":"n","expires_at":"soon"}`, 400, "/expires_at"},
		"no overlap":            {"POST", "/v1/api-keys/key_a/rotate", `{"overlap_seconds":-1}`, 400, "/overlap_seconds"},
		"an overlap of ages":    {"POST", "/v1/api-keys/key_a/rotate", `{"overlap_seconds":9223372036854775807}`, 400, "/overlap_seconds"},
		"another access":        {"PATCH", "/v1/api-keys/key_a", `{"access":"read"}`, 400, "/access"},
		"a foreign project":     {"POST", "/v1/api-keys", `{"project":"prj_b","environment":"prod","name":"n"}`, 404, "prj_b"},
		"a foreign key":         {"GET", "/v1/api-keys/key_b", "", 404, "key_b"},
		"to revoke a foreign":   {"POST", "/v1/api-keys/key_b/revoke", "", 404, "key_b"},
		"too long an overlap":   {"POST", "/v1/api-keys/key_a/rotate", `{"overlap_seconds":604801}`, 400, "/overlap_seconds"},
		"a list of others' own": {"GET", "/v1/api-keys?organization=org_b", "", 404, "org_b"},
	} {
		status, answer := r.call(t, "org_a", c.method, c.path, c.body)
		text, err := json.Marshal(answer)
		if err != nil || status != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, text, c.status, c.says)
		}
	}
}

// A key is changed, rotated, and revoked: each answer shows its new state.
func TestLife(t *testing.T) {
	r := open(t)
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	path := "/v1/api-keys/" + made["id"].(string)
	if status, changed := r.call(t, "org_a", "PATCH", path, `{"rate_per_minute":0,"access":"write"}`); status != 200 || changed["rate_per_minute"] != nil || changed["access"] != "write" {
		t.Errorf("changed: %d %v", status, changed)
	}
	status, successor := r.call(t, "org_a", "POST", path+"/rotate", `{"overlap_seconds":60}`)
	old, _ := successor["rotated"].(map[string]any)
	if status != 201 || successor["replaces"] != made["id"] || successor["key"] == made["key"] || old["rotated_to"] != successor["id"] || old["state"] != "active" {
		t.Errorf("rotated: %d %v", status, successor)
	}
	if status, answer := r.call(t, "org_a", "POST", path+"/rotate", ""); status != 409 || answer["code"] != "api_key_rotated" {
		t.Errorf("rotated again: %d %v", status, answer)
	}
	for range 2 { // the first reason stays
		if status, revoked := r.call(t, "org_a", "POST", path+"/revoke", `{"reason":"leaked"}`); status != 200 || revoked["state"] != "revoked" || revoked["revoked_reason"] != "leaked" {
			t.Errorf("revoked: %d %v", status, revoked)
		}
	}
	for _, what := range []string{path, path + "/rotate"} {
		method := map[bool]string{true: "PATCH", false: "POST"}[what == path]
		if status, answer := r.call(t, "org_a", method, what, `{}`); status != 409 || answer["code"] != "api_key_revoked" {
			t.Errorf("%s %s of a revoked key: %d %v", method, what, status, answer)
		}
	}
}

// At the limit of keys the reason is shown, but a leaked one can be rotated.
func TestRoom(t *testing.T) {
	r := open(t)
	r.work.Limits.APIKeys = 1
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	if status, answer := r.call(t, "org_a", "POST", "/v1/api-keys", newKey); status != 409 || answer["code"] != "limit_reached" {
		t.Errorf("one too many: %d %v", status, answer)
	}
	if status, answer := r.call(t, "org_a", "POST", "/v1/api-keys/"+made["id"].(string)+"/rotate", ""); status != 201 {
		t.Errorf("rotated: %d %v", status, answer)
	}
	if got := r.page(t, tenants.Admin, "GET", "", nil); !strings.Contains(got.Body.String(), "The organization has 1 API keys") {
		t.Errorf("the list does not say that it is full: %s", got.Body)
	}
}

// A reader runs something before the first byte is read.
type reader struct {
	io.Reader
	before func()
}

func (r *reader) Read(p []byte) (int, error) {
	if r.before != nil {
		r.before()
		r.before = nil
	}
	return r.Reader.Read(p)
}

// No key is issued for a project whose
// deletion is requested during the request.
func TestDeletedMeanwhile(t *testing.T) {
	r := open(t)
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	project := unitofwork.Stream("org_a", "deletion", "prj_a")
	of := tenants.Deletable{Organization: "org_a", Project: "prj_a"}
	version := int64(0)
	happens := func(event tenants.Event) {
		testenv.Must(t, r.work.Events.Append(t.Context(), project, version, nil, event))
		version++
	}
	for path, body := range map[string]string{"": newKey, "/" + made["id"].(string) + "/rotate": ""} {
		asked := func() {
			happens(tenants.DeletionRequested{Deletable: of, At: tenantstest.Noon, BeginsAt: tenantstest.Now()})
		}
		r.work.Random = &reader{rand.Reader, asked}
		if status, answer := r.call(t, "org_a", "POST", "/v1/api-keys"+path, body); status != 404 {
			t.Errorf("%q: %d %v", path, status, answer)
		}
		happens(tenants.DeletionCancelled{Deletable: of, At: tenantstest.Now()})
	}
	if _, answer := r.call(t, "org_a", "GET", "/v1/api-keys?project=prj_a", ""); len(answer["items"].([]any)) != 2 {
		t.Errorf("its keys: %v", answer)
	}
	if _, first := r.call(t, "org_a", "GET", "/v1/api-keys?limit=1", ""); len(first["items"].([]any)) != 1 || first["next_cursor"] == nil {
		t.Errorf("the first of the organization's keys: %v", first)
	}
}

// The pages show a new key once, then its
// stored part, and revoke it with a reason.
func TestPages(t *testing.T) {
	r := open(t)
	form := url.Values{"name": {"pods"}, "project": {"prj_a"}, "environment": {"staging"}, "ends": {"90"}, "form": {"form_1"}}
	created := r.page(t, tenants.Admin, "POST", "", form)
	secret := regexp.MustCompile(`weir_[0-9a-f]{48}`).FindString(created.Body.String())
	id := regexp.MustCompile(`/api-keys/(key_[0-9a-f]+)/first-event`).FindStringSubmatch(created.Body.String())
	if created.Code != 201 || secret == "" || id == nil || created.Header().Get("Cache-Control") != "no-store" ||
		!strings.Contains(html.UnescapeString(created.Body.String()), "curl 'https://weir.example/v1/logs'") {
		t.Fatalf("created: %d %s", created.Code, created.Body)
	}
	if again := r.page(t, tenants.Admin, "POST", "", form); again.Code != 409 || strings.Contains(again.Body.String(), secret) {
		t.Errorf("the form again: %d %s", again.Code, again.Body)
	}
	for _, path := range []string{"", "/" + id[1], "/" + id[1] + "/rotate", "/" + id[1] + "/edit", "/" + id[1] + "/revoke"} {
		if got := r.page(t, tenants.Admin, "GET", path, nil); got.Code != 200 || !strings.Contains(got.Body.String(), "pods") || strings.Contains(got.Body.String(), secret) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := r.page(t, tenants.Admin, "POST", "/"+id[1]+"/revoke", url.Values{"reason": {"laptop lost"}}); got.Code != 303 {
		t.Errorf("revoked: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, tenants.Admin, "GET", "/"+id[1], nil); !strings.Contains(got.Body.String(), "laptop lost") {
		t.Errorf("the page does not say why: %s", got.Body)
	}
}

// A page is for the roles of its action, as in
// the session; actions check the present role.
func TestRoles(t *testing.T) {
	r := open(t)
	form := url.Values{"name": {"pods"}, "project": {"prj_a"}, "environment": {"prod"}, "ends": {"never"}}
	for role, want := range map[tenants.Role]int{tenants.Viewer: 403, tenants.Developer: 403, tenants.Admin: 201} {
		if got := r.page(t, role, "POST", "", form); got.Code != want {
			t.Errorf("a new key of prod as %s: %d, want %d", role, got.Code, want)
		}
	}
	demoted := tenants.MemberRoleChanged{Member: "mem_a", Role: tenants.Viewer, At: tenantstest.Now()}
	testenv.Must(t, r.work.Events.Append(t.Context(), unitofwork.Stream("org_a", "member", "mem_a"), 0, nil, demoted))
	if got := r.page(t, tenants.Admin, "POST", "", form); got.Code != 403 || !strings.Contains(got.Body.String(), "Your role was changed meanwhile") {
		t.Errorf("by an admin who is a viewer now: %d %s", got.Code, got.Body)
	}
}

// The policy is applied to an exposed key,
// as the system; an unknown one is ignored.
func TestLeaks(t *testing.T) {
	r := open(t)
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	found, err := keys.NewStore(query.NewReader(r.pool)).Key(t.Context(), pg.Organization("org_a"), made["id"].(string))
	testenv.Must(t, err)
	policy := tenants.SecurityPolicySet{Organization: "org_a", LeakedKeys: tenants.RevokeLeaked, PlainHTTPKeys: tenants.FlagPlainHTTP, At: tenantstest.Noon}
	testenv.Must(t, r.work.Events.Append(t.Context(), unitofwork.Stream("org_a", "security-policy", "org_a"), 0, nil, policy))
	exposures := keys.NewExposures(r.work, registry.SecurityPolicyOf)
	for hash, want := range map[string]bool{found.Digest.Hash: true, strings.Repeat("f", 64): false} {
		if isKey, err := exposures.Leaked(t.Context(), keys.Leak{Hash: hash, Where: "https://example.com/x"}); isKey != want || err != nil {
			t.Errorf("is a key: %t, %v; want %t", isKey, err, want)
		}
	}
	if _, leaked := r.call(t, "org_a", "GET", "/v1/api-keys/"+found.ID, ""); leaked["state"] != "revoked" || len(leaked["exposures"].([]any)) != 1 {
		t.Errorf("the leaked key: %v", leaked)
	}
}
