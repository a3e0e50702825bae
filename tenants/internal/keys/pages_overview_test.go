package keys_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// overview opens an overview as a member of org_a.
func (r room) overview(t *testing.T, role tenants.Role, query string) *httptest.ResponseRecorder {
	t.Helper()
	return tenantstest.Call(t, r.pages, tenantstest.SignedIn("a", role), "GET", "/console/overview"+query, "", nil)
}

// used counts an accepted entry of a key.
func (r room) used(t *testing.T, key string, at time.Time) {
	t.Helper()
	used := tenants.UsedAPIKey{Organization: "org_a", APIKey: key}
	used.Accepted, used.FirstAcceptedAt, used.LastUsedAt = 1, at, at
	testenv.Must(t, pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		return keys.AddUsage(t.Context(), tx, []tenants.UsedAPIKey{used})
	}))
}

// newKeyUntil is a new key that ends in so many days; 0: never.
func (r room) newKeyUntil(t *testing.T, name string, days int) string {
	t.Helper()
	end := ""
	if days > 0 {
		end = `,"expires_at":"` + tenantstest.Now().AddDate(0, 0, days).Format(time.RFC3339) + `"`
	}
	_, made := r.call(t, "org_a", "POST", "/v1/api-keys", fmt.Sprintf(`{"project":"prj_a","environment":"dev","name":%q%s}`, name, end))
	return made["id"].(string)
}

// The overview of a project that nothing was sent to says what to do first.
func TestOverviewOfAnEmptyProject(t *testing.T) {
	r := open(t)
	first := r.overview(t, tenants.Developer, "?project=prj_a")
	tenantstest.Want(t, "a developer", first, 200, `href="/console/settings/api-keys/new?project=prj_a"`)
	if body := first.Body.String(); strings.Contains(body, `data-part="logs"`) || strings.Contains(body, `data-part="errors"`) || !strings.Contains(body, `<div data-part="usage">`) {
		t.Errorf("only the quota is worth a look: %s", body)
	}
	tenantstest.Want(t, "a viewer", r.overview(t, tenants.Viewer, "?project=prj_a"), 200, "Ask one of the owners, admins or developers")
	id := r.newKeyUntil(t, "checkout", 90)
	tenantstest.Want(t, "with a key", r.overview(t, tenants.Viewer, "?project=prj_a"), 200, `href="/console/settings/api-keys/`+id+`"`)
}

// The overview has a place for each part that the role may see, and the keys that
// end soon or are not used; revoked and expired ones are not mentioned.
func TestOverview(t *testing.T) {
	r := open(t)
	for days, name := range map[int]string{0: "lasting", 13: "ending", 15: "later"} {
		r.used(t, r.newKeyUntil(t, name, days), tenantstest.Noon)
	}
	r.used(t, r.newKeyUntil(t, "idle", 0), tenantstest.Noon.AddDate(0, 0, -31))
	testenv.Must(t, pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE api_keys SET created_at = created_at - interval '40 days' WHERE name = 'idle'`)
		return err
	}))
	got := r.overview(t, tenants.Viewer, "?project=prj_a")
	tenantstest.Want(t, "the page", got, 200, "<h1>a</h1>")
	body := got.Body.String()
	for _, want := range []string{`<div data-part="logs">`, `<div data-part="errors">`, `<div data-part="usage">`, "<bdi>ending</bdi>", "<bdi>idle</bdi>", "last used"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	for _, not := range []string{"<bdi>lasting</bdi>", "<bdi>later</bdi>", "<bdi>a</bdi></a>", "Switch"} {
		if strings.Contains(body, not) {
			t.Errorf("%s in %s", not, body)
		}
	}
}

// An overview belongs to a project of the reader's organization, whom the role lets see
// projects. The only one opens by itself, and of several one chooses.
func TestOverviewIsOfAProject(t *testing.T) {
	r := open(t)
	tenantstest.Want(t, "of others", r.overview(t, tenants.Owner, "?project=prj_b"), 404, "prj_b")
	tenantstest.Want(t, "as billing", r.overview(t, tenants.Billing, "?project=prj_a"), 403, "which may not see the projects")
	if got := r.overview(t, tenants.Viewer, ""); got.Code != 303 || got.Header().Get("Location") != "/console/overview?project=prj_a" {
		t.Errorf("the only project: %d %v", got.Code, got.Header())
	}
	projects := registry.NewProjects(registry.NewService(r.work, func(string) tenants.Tier { return "" }))
	request := unitofwork.Request{Caller: tenants.Caller{ID: "mem_a", Organization: "org_a"}, Role: tenants.Admin}
	created, err := projects.Create(t.Context(), request, "org_a", "Second <b>")
	testenv.Must(t, err)
	tenantstest.Want(t, "several", r.overview(t, tenants.Viewer, ""), 200, `<a href="/console/overview?project=`+created.ID+`"><bdi>Second &lt;b&gt;</bdi></a>`)
	tenantstest.Want(t, "the other", r.overview(t, tenants.Viewer, "?project="+created.ID), 200, `<option value="`+created.ID+`" selected>Second`)
	for _, id := range []string{"prj_a", created.ID} {
		testenv.Must(t, pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE projects SET deletion = 'del_1' WHERE id = $1`, id)
			return err
		}))
		tenantstest.Want(t, "deleted", r.overview(t, tenants.Owner, "?project="+id), 404, id)
	}
	tenantstest.Want(t, "none", r.overview(t, tenants.Viewer, ""), 200, "Ask one of the owners")
}
