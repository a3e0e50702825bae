package audit_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// reachable finds the organizations that a caller may access.
type reachable struct{}

func (reachable) Organization(_ context.Context, caller tenants.Caller, id string) (tenants.Organization, error) {
	if !caller.CanAccess(id) {
		return tenants.Organization{}, tenants.ErrNotFound
	}
	return tenants.Organization{ID: id}, nil
}

// openRoom returns the room of the audit on its own schema.
func openRoom(t *testing.T) func(as identity.Principal, path string) *httptest.ResponseRecorder {
	t.Helper()
	service := audit.NewService(audit.NewStore(query.NewReader(tenantstest.Open(t))), reachable{})
	api := audit.NewAPI(tenantstest.API(), service)
	mount := func(router chi.Router) {
		tenantstest.Route(router, api.Operations())
		audit.NewPages(tenantstest.Pages(), service).Mount(router)
	}
	return func(as identity.Principal, path string) *httptest.ResponseRecorder {
		return tenantstest.Call(t, mount, as, "GET", path, "", nil)
	}
}

// The API serves the matching lines of one's own organization,
// as JSON or as CSV, and refuses unknown filters.
func TestAPI(t *testing.T) {
	ask := openRoom(t)
	got := ask(tenantstest.Token("org_a"), "/v1/audit-events?action=api_key.revoked")
	var list struct {
		Items []struct {
			Organization string
			Action       string
		}
	}
	if err := json.Unmarshal(got.Body.Bytes(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Organization != "org_a" || list.Items[0].Action != "api_key.revoked" {
		t.Errorf("the revoked keys: %d %s, %v", got.Code, got.Body, err)
	}
	got = ask(tenantstest.Token("org_a"), "/v1/audit-events?format=csv")
	if rows, err := csv.NewReader(got.Body).ReadAll(); err != nil || len(rows) != 1+perOrganization {
		t.Errorf("%d rows of CSV, %v", len(rows), err)
	}
	for path, want := range map[string]int{
		"?organization=org_b": 404, "?organization=*": 404, "?acton=x": 400, "?format=xml": 400, "?from=soon": 400, "?to=2026-01-01": 400, "?actor=a%00b": 400,
		"?target=%2F": 400, "?action=API": 400, "?cursor=x": 400, "?limit=0": 400, "?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": 400,
		"?actor=a&actor=b": 400, "?format=csv&limit=5": 400,
	} {
		if got := ask(tenantstest.Token("org_a"), "/v1/audit-events"+path); got.Code != want {
			t.Errorf("%s: %d %s, want %d", path, got.Code, got.Body, want)
		}
	}
}

// Filters work together and alone.
func TestFilters(t *testing.T) {
	ask := openRoom(t)
	for query, want := range map[string]int{
		"": perOrganization, "actor=mem_a": perOrganization, "actor=mem_x": 0, "action=api_key.rotted": 0, "target=key_a": 2, "target=key_b": 0,
		"from=2001-01-01T00:00:00Z": perOrganization, "to=2001-01-01T00:00:00Z": 0, "target=key_a&action=api_key.issued&actor=mem_a": 1,
	} {
		got := ask(tenantstest.Token("org_a"), "/v1/audit-events?limit=1000&"+query)
		if found := strings.Count(got.Body.String(), `"sequence"`); got.Code != 200 || found != want {
			t.Errorf("%q finds %d lines, want %d: %d %s", query, found, want, got.Code, got.Body)
		}
	}
}

// The page shows the lines as text to those who
// may read them, and the file has all that match.
func TestPages(t *testing.T) {
	ask := openRoom(t)
	if got := ask(tenantstest.SignedIn("a", tenants.Admin), "/console/settings/audit?action=api_key.revoked"); got.Code != 200 || !strings.Contains(got.Body.String(), "API key revoked") {
		t.Errorf("the page: %d %s", got.Code, got.Body)
	}
	for query, field := range map[string]string{
		"?from=soon": "from", "?to=2026-02-30": "to", "?from=2026-01-02&to=2026-01-01": "to", "?target=a%00b": "target", "?action=x": "action", "?actor=%2F": "actor",
	} {
		tenantstest.Want(t, query, ask(tenantstest.SignedIn("a", tenants.Admin), "/console/settings/audit"+query), 422, `id="fault-`+field+`"`)
		tenantstest.Want(t, query+" as a file", ask(tenantstest.SignedIn("a", tenants.Admin), "/console/settings/audit.csv"+query), 400, "")
	}
	tenantstest.Want(t, "a cursor of nothing", ask(tenantstest.SignedIn("a", tenants.Admin), "/console/settings/audit?cursor=x"), 400, "")
	got := ask(tenantstest.SignedIn("a", tenants.Admin), "/console/settings/audit.csv?action=api_key.revoked")
	if rows, err := csv.NewReader(got.Body).ReadAll(); err != nil || len(rows) != 2 {
		t.Errorf("%d rows of the file, %v", len(rows), err)
	}
	if got := ask(tenantstest.SignedIn("a", tenants.Developer), "/console/settings/audit"); got.Code != 403 {
		t.Errorf("as developer: %d", got.Code)
	}
}
