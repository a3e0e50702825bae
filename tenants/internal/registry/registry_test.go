package registry_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A room is the registry on its own schema, with
// members who can sign in without a password.
type room struct {
	work     *unitofwork.Writer
	services registry.Services
	pool     *pgxpool.Pool
	tiers    map[string]tenants.Tier // present ones of organizations
}

func open(t *testing.T, able members) room {
	t.Helper()
	pool := tenantstest.Open(t)
	work := tenantstest.NewWriter(pool)
	tiers := map[string]tenants.Tier{}
	organizations := registry.NewService(work, func(organization string) tenants.Tier { return tiers[organization] })
	projects := registry.NewProjects(organizations)
	return room{work, registry.Services{
		Organizations: organizations, Projects: projects, Tokens: registry.NewTokens(organizations),
		Policies: registry.NewPolicies(organizations, able), Deletions: registry.NewDeletions(organizations, projects, 0, audit.Reduced),
	}, pool, tiers}
}

type members int

func (m members) OwnersWithoutPassword(context.Context, *query.Reader, pg.Organization) (int, error) {
	return int(m), nil
}

func (m members) MembersWithoutPassword(context.Context, pg.Organization) (able, all int, err error) {
	return int(m), 7, nil
}

func (r room) api(admin chi.Router) {
	tenantstest.Route(admin, registry.NewAPI(tenantstest.API(), r.services).Operations())
}

func (r room) pages(settings chi.Router) {
	registry.NewPages(tenantstest.Pages(), r.services).Mount(settings)
}

// call sends a request of an organization's
// token, or the installation's, to the API.
func (r room) call(t *testing.T, organization, method, path, body string) (status int, answer map[string]any) {
	t.Helper()
	return tenantstest.CallAPI(t, r.api, organization, method, path, body)
}

// page sends a request of a member of org_a to the pages.
func (r room) page(t *testing.T, role tenants.Role, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	return tenantstest.Call(t, r.pages, tenantstest.SignedIn("a", role), method, "/console/settings"+path, "", form)
}

// An organization shows the tier published by
// the ledger, and before that the original one.
func TestTierIsThatInForce(t *testing.T) {
	r := open(t, 1)
	_, created := r.call(t, "", "POST", "/v1/organizations", `{"name":"Acme","tier":"indie"}`)
	acme, _ := created["id"].(string)
	for _, published := range []tenants.Tier{"", tenants.Scale} {
		r.tiers[acme] = published
		want := string(cmp.Or(published, tenants.Indie))
		_, one := r.call(t, acme, "GET", "/v1/organizations/"+acme, "")
		_, renamed := r.call(t, acme, "PATCH", "/v1/organizations/"+acme, `{"name":"Acme `+want+`"}`)
		_, all := r.call(t, acme, "GET", "/v1/organizations", "")
		listed := all["items"].([]any)[0].(map[string]any)
		if one["tier"] != want || renamed["tier"] != want || listed["tier"] != want {
			t.Errorf("published is %q: got %v, %v and %v, want %s", published, one["tier"], renamed["tier"], listed["tier"], want)
		}
	}
	r.tiers["org_a"] = tenants.Scale
	if page := r.page(t, tenants.Viewer, "GET", "/organization", nil).Body.String(); !strings.Contains(page, `<span class="badge accent">scale</span>`) {
		t.Errorf("the page does not show the tier: %s", page)
	}
}

// The API returns one's own, and nothing of others.
func TestAPI(t *testing.T) {
	r := open(t, 1)
	_, created := r.call(t, "", "POST", "/v1/organizations", `{"name":"Acme","tier":"indie"}`)
	acme, _ := created["id"].(string)
	_, project := r.call(t, acme, "POST", "/v1/projects", `{"organization":"`+acme+`","name":"Shop"}`)
	for name, c := range map[string]struct {
		as, method, path, body string
		status                 int
		says                   string
	}{
		"an organization by no operator": {acme, "POST", "/v1/organizations", `{"name":"Other","tier":"indie"}`, 403, "forbidden"},
		"an organization":                {acme, "GET", "/v1/organizations/" + acme, "", 200, `"id":"` + acme + `"`},
		"a foreign organization":         {acme, "GET", "/v1/organizations/org_a", "", 404, "org_a"},
		"another name":                   {acme, "PATCH", "/v1/organizations/" + acme, `{"name":"Acme & Co"}`, 200, `Acme`},
		"no name":                        {acme, "PATCH", "/v1/organizations/" + acme, `{"name":" "}`, 400, "/name"},
		"organizations":                  {acme, "GET", "/v1/organizations", "", 200, `"items":[{`},
		"projects":                       {acme, "GET", "/v1/projects", "", 200, `"items":[{`},
		"a project's other name":         {acme, "PATCH", "/v1/projects/" + project["id"].(string), `{"name":"Store"}`, 200, `"Store"`},
		"a foreign project":              {acme, "PATCH", "/v1/projects/prj_a", `{"name":"Store"}`, 404, "prj_a"},
		"the policy":                     {acme, "GET", "/v1/organizations/" + acme + "/security-policy", "", 200, `"notify"`},
		"a foreign policy":               {acme, "GET", "/v1/organizations/org_a/security-policy", "", 404, "org_a"},
		"passwords that are none":        {"", "PUT", "/v1/organizations/" + acme + "/security-policy", `{"leaked_keys":"notify","plain_http_keys":"flag","passwords":"never"}`, 400, "/passwords"},
		"a policy that is none":          {acme, "PUT", "/v1/organizations/" + acme + "/security-policy", `{"leaked_keys":"x","plain_http_keys":"flag"}`, 400, "/leaked_keys"},
		"a scope that the caller lacks":  {acme, "POST", "/v1/service-tokens", `{"organization":"` + acme + `","name":"n","scopes":["billing:read"]}`, 403, "forbidden"},
		"tokens of the installation":     {acme, "GET", "/v1/service-tokens?organization=*", "", 404, "not_found"},
		"a token of the installation":    {acme, "POST", "/v1/service-tokens", `{"organization":"*","name":"n","scopes":["tenants:admin"]}`, 404, "not_found"},
		"a foreign token":                {acme, "POST", "/v1/service-tokens/tok_a/revoke", "", 404, "tok_a"},
	} {
		status, answer := r.call(t, c.as, c.method, c.path, c.body)
		text, err := json.Marshal(answer)
		if err != nil || status != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, text, c.status, c.says)
		}
	}
}

// A service token is shown whole once, and ends with its reason.
func TestServiceTokens(t *testing.T) {
	r := open(t, 1)
	status, made := r.call(t, "org_a", "POST", "/v1/service-tokens", `{"organization":"org_a","name":"invoicing","scopes":["tenants:admin"]}`)
	secret, _ := made["token"].(string)
	if status != 201 || !regexp.MustCompile(`^weirsvc_[0-9a-f]{48}$`).MatchString(secret) {
		t.Fatalf("created: %d %v", status, made)
	}
	if status, revoked := r.call(t, "org_a", "POST", "/v1/service-tokens/"+made["id"].(string)+"/revoke", `{"reason":"left"}`); status != 200 || revoked["state"] != "revoked" {
		t.Errorf("revoked: %d %v", status, revoked)
	}
	if got := r.page(t, tenants.Admin, "GET", "/service-tokens", nil); strings.Contains(got.Body.String(), secret) || !strings.Contains(got.Body.String(), "left") {
		t.Errorf("the list: %s", got.Body)
	}
}

// Passwords are switched off only by an owner,
// and where an owner can sign in without one.
func TestPasswordsOff(t *testing.T) {
	const path, off = "/v1/organizations/org_a/security-policy", `{"leaked_keys":"notify","plain_http_keys":"flag","passwords":"off"}`
	if status, answer := open(t, 0).call(t, "", "PUT", path, off); status != 400 {
		t.Errorf("with no owner who could come in: %d %v", status, answer)
	}
	r := open(t, 1)
	if status, answer := r.call(t, "org_a", "PUT", path, off); status != 403 {
		t.Errorf("by who is no owner: %d %v", status, answer)
	}
	if status, answer := r.call(t, "", "PUT", path, off); status != 200 || answer["passwords"] != "off" {
		t.Errorf("by an operator: %d %v", status, answer)
	}
	if status, answer := r.call(t, "org_a", "PUT", path, `{"leaked_keys":"notify","plain_http_keys":"flag"}`); status != 200 || answer["passwords"] != "off" {
		t.Errorf("a policy without a word of them: %d %v", status, answer)
	}
	if err := r.services.Policies.AllowPasswords(t.Context(), unitofwork.AtTheServer("test"), "org_a"); err != nil {
		t.Error(err)
	}
	if status, answer := r.call(t, "org_a", "GET", path, ""); status != 200 || answer["passwords"] != "allowed" {
		t.Errorf("allowed again: %d %v", status, answer)
	}
}

// The pages show the present state to those
// who may read it, and execute their forms.
func TestPages(t *testing.T) {
	r := open(t, 3)
	for path, want := range map[string]string{"/organization": "Acme", "/projects": "a", "/service-tokens": "Service tokens"} {
		if got := r.page(t, tenants.Admin, "GET", path, nil); got.Code != 200 || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := r.page(t, tenants.Owner, "GET", "/security", nil); !strings.Contains(got.Body.String(), "3 of 7 members have a passkey") {
		t.Errorf("security: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, tenants.Admin, "POST", "/projects", url.Values{"name": {"Shop"}, "form": {"form_1"}}); got.Code != 303 {
		t.Errorf("a new project: %d %s", got.Code, got.Body)
	}
	if got := r.page(t, tenants.Admin, "GET", "/projects", nil); !strings.Contains(got.Body.String(), "Shop") {
		t.Errorf("the projects after that: %s", got.Body)
	}
	for _, name := range []string{" ", strings.Repeat("n", 201)} {
		tenantstest.Want(t, "a name of "+strconv.Itoa(len(name)), r.page(t, tenants.Admin, "POST", "/projects", url.Values{"name": {name}}), 422, `id="fault-name"`)
	}
	r.work.Limits.Projects = 2
	tenantstest.Want(t, "a project too many", r.page(t, tenants.Admin, "POST", "/projects", url.Values{"name": {"More"}}), 409, "Delete one")
	tenantstest.Want(t, "the full list", r.page(t, tenants.Admin, "GET", "/projects", nil), 200, "The organization has 2 projects, and may not have more.")
	for _, path := range []string{"/security", "/service-tokens/new"} {
		if got := r.page(t, tenants.Viewer, "GET", path, nil); got.Code != 403 {
			t.Errorf("%s as viewer: %d", path, got.Code)
		}
	}
}

// The configured operator's token is registered once,
// a new one revokes it, and it does not return.
func TestOperator(t *testing.T) {
	r := open(t, 1)
	first, second := secretOf(t, "a"), secretOf(t, "b")
	for _, secret := range []tenants.Secret{first, first, second} {
		testenv.Must(t, r.services.Tokens.RegisterOperator(t.Context(), secret))
	}
	if err := r.services.Tokens.RegisterOperator(t.Context(), first); !errors.Is(err, registry.ErrOperatorRevoked) {
		t.Errorf("the one of before: %v", err)
	}
}

// Projects created and deleted without end reach a
// limit, too: each leaves its id in every process.
func TestDeletedProjectsAreLimited(t *testing.T) {
	r := open(t, 1)
	loop := registry.NewDeletionLoop(r.services.Deletions, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	r.work.Limits.Projects = 2 // the organization has one
	const brief = `{"organization":"org_a","name":"Brief"}`
	for i := range 5 {
		status, made := r.call(t, "org_a", "POST", "/v1/projects", brief)
		if status != 201 {
			t.Fatalf("project %d: %d %v", i, status, made)
		}
		project := made["id"].(string)
		if status, answer := r.call(t, "", "DELETE", "/v1/projects/"+project, ""); status != 202 {
			t.Fatalf("deleted: %d %v", status, answer)
		}
		err := loop.RunOnce(t.Context())
		r.erased(t, project)
		testenv.Must(t, errors.Join(err, loop.RunOnce(t.Context())))
	}
	if status, answer := r.call(t, "org_a", "POST", "/v1/projects", brief); status != 409 || answer["code"] != "limit_reached" ||
		!strings.Contains(answer["detail"].(string), "6 projects that exist or were deleted in the last 30 days") || !strings.Contains(answer["detail"].(string), "Wait") {
		t.Errorf("one more: %d %v", status, answer)
	}
}

// Deletions that a module does not report delay neither
// the beginning nor the end of others, and are counted.
func TestDeletionsOvertake(t *testing.T) {
	r, metrics := open(t, 1), prometheus.NewRegistry()
	loop := registry.NewDeletionLoop(r.services.Deletions, metrics, slog.New(slog.DiscardHandler))
	stuck := `INSERT INTO deletions (organization, id, project, state, requested_at, begins_at, gone_by)
		SELECT 'org_b', 'prj_' || n, 'prj_' || n, 'erasing', $1, $1, $1 FROM generate_series(1, 150) n`
	err := pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), stuck, tenantstest.Noon)
		return err
	})
	testenv.Must(t, err)
	r.call(t, "", "DELETE", "/v1/projects/prj_a", "")
	r.passes(t, loop, tenants.Erasing)
	r.erased(t, "prj_a")
	r.passes(t, loop, tenants.Gone)
	want := "# HELP weir_tenants_deletions_overdue Deletions that some module has not reported in time.\n" +
		"# TYPE weir_tenants_deletions_overdue gauge\nweir_tenants_deletions_overdue 150\n"
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "weir_tenants_deletions_overdue"); err != nil {
		t.Error(err)
	}
}

// erased erases a project of org_a, and reports that for all modules.
func (r room) erased(t *testing.T, project string) {
	t.Helper()
	err := pg.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
		err := pg.AsSystem(t.Context(), tx)
		if err == nil {
			_, err = tx.Exec(t.Context(), `DELETE FROM projects WHERE id = $1 AND id <> 'prj_a'`, project) // which has keys
		}
		for _, module := range contract.ErasingModules() {
			err = errors.Join(err, registry.KeepErased(t.Context(), tx, tenants.Deletable{Organization: "org_a", Project: project}, module, nil))
		}
		return err
	})
	testenv.Must(t, err)
}

// passes runs the loop once, and checks the state of prj_a's deletion.
func (r room) passes(t *testing.T, loop *registry.DeletionLoop, want tenants.DeletionState) {
	t.Helper()
	if err := loop.RunOnce(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := registry.NewStore(query.NewReader(r.pool)).Deletion(t.Context(), "org_a", "prj_a")
	if err != nil || found.State != want {
		t.Fatalf("the deletion is %q, want %q; %v", found.State, want, err)
	}
}

func secretOf(t *testing.T, digit string) tenants.Secret {
	t.Helper()
	secret, err := tenants.ParseSecret(tenants.ServiceTokenPrefix, tenants.ServiceTokenPrefix+strings.Repeat(digit, 48))
	testenv.Must(t, err)
	return secret
}

// Operators delete and restore organizations and
// projects; an organization's token does neither.
func TestAPIOfDeletions(t *testing.T) {
	r := open(t, 1)
	r.services.Deletions = r.services.Deletions.Within(time.Hour)
	for _, path := range []string{"/v1/projects/prj_a", "/v1/organizations/org_a"} {
		if status, answer := r.call(t, "org_a", "DELETE", path, ""); status != 403 {
			t.Errorf("%s by its token: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "", "DELETE", path, ""); status != 202 || answer["state"] != "deleting" {
			t.Errorf("%s is deleted: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "org_a", "GET", path, ""); status != 404 && status != 405 {
			t.Errorf("%s after that: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "", "GET", "/v1/deletions?organization=org_a", ""); status != 200 || len(answer["items"].([]any)) == 0 {
			t.Errorf("the deletions: %d %v", status, answer)
		}
		if status, answer := r.call(t, "org_a", "POST", path+"/restore", ""); status != 403 {
			t.Errorf("%s is restored by its token: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "", "POST", path+"/restore", ""); status != 200 || answer["state"] != "cancelled" {
			t.Errorf("%s is restored: %d %v", path, status, answer)
		}
	}
	if status, first := r.call(t, "", "GET", "/v1/deletions?organization=org_a&limit=1", ""); status != 200 || first["next_cursor"] == nil {
		t.Errorf("the first of two deletions: %d %v", status, first)
	}
	if status, list := r.call(t, "org_a", "GET", "/v1/service-tokens", ""); status != 200 || len(list["items"].([]any)) != 1 {
		t.Errorf("the service tokens of what was restored: %d %v", status, list)
	}
}
