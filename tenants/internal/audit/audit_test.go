package audit_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

// perOrganization is how many events the seed appends.
const perOrganization = 27

// Neither a mistake nor an injected statement changes the audit: the
// application lacks the privilege, and those who have it are refused.
func TestAuditIsOnlyAddedTo(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	for _, statement := range []string{
		`UPDATE audit_events SET actor = 'somebody else'`, `DELETE FROM audit_events`, `TRUNCATE audit_events`,
		`INSERT INTO audit_events SELECT * FROM audit_events ON CONFLICT (organization, sequence) DO UPDATE SET actor = 'x'`,
	} {
		if err := asSystem(t, pool, statement); !refused(err) {
			t.Errorf("%s: got %v", statement, err)
		}
	}
	testenv.Must(t, asSystem(t, pool, `GRANT ALL ON audit_events TO CURRENT_USER`))
	for _, statement := range []string{
		`UPDATE audit_events SET actor = 'somebody else'`, `DELETE FROM audit_events`, `TRUNCATE audit_events`,
	} {
		if err := asSystem(t, pool, statement); !refused(err) || !strings.Contains(err.Error(), "never changed") {
			t.Errorf("%s by one who may: got %v", statement, err)
		}
	}
	if check := checkAudit(t, pool, "org_a"); check.Lines != perOrganization || check.Faults != nil {
		t.Errorf("after all that: %d lines, %v", check.Lines, check.Faults)
	}
}

// refused reports whether Postgres refused something.
func refused(err error) bool {
	refusal, ok := err.(*pgconn.PgError) //nolint:errorlint // asSystem wraps nothing
	return ok && refusal.Code == "42501"
}

func asSystem(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) error {
	t.Helper()
	return pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), statement, args...)
		return err
	})
}

func checkAudit(t *testing.T, pool *pgxpool.Pool, organization string) tenants.AuditCheck {
	t.Helper()
	check, err := audit.Check(t.Context(), pool, projections.NewEvents(pool), organization)
	testenv.Must(t, err)
	return check
}

// disableTriggers disables the triggers that protect the
// audit, as the table's owner or a superuser can.
func disableTriggers(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{`ALTER TABLE audit_events DISABLE TRIGGER USER`, `GRANT ALL ON audit_events TO CURRENT_USER`} {
		testenv.Must(t, asSystem(t, pool, statement))
	}
}

// Tampering that bypasses the guards is found: lines no longer follow
// from each other or, where they were made to, from the events.
func TestTamperingIsFound(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	disableTriggers(t, pool)
	testenv.Must(t, asSystem(t, pool, `CREATE TABLE kept AS SELECT * FROM audit_events`))
	for name, test := range map[string]struct {
		tamper []string
		want   string
	}{
		"nothing":              {nil, ""},
		"another actor":        {[]string{`UPDATE audit_events SET actor = 'mem_x' WHERE organization = 'org_a' AND sequence = 4`}, `line 4 was changed: actor is "mem_x", the events have "mem_a"`},
		"another time":         {[]string{`UPDATE audit_events SET at = at - interval '1 microsecond' WHERE organization = 'org_a' AND sequence = 4`}, "line 4 was changed: at is"},
		"another reason":       {[]string{`UPDATE audit_events SET after = replace(after, 'leaked', 'tidied') WHERE organization = 'org_a'`}, "line 4 was changed: after is"},
		"moved bytes":          {[]string{`UPDATE audit_events SET target = target || 'x', target_kind = left(target_kind, -1) WHERE organization = 'org_a' AND sequence = 2`}, "line 2 was changed"},
		"another hash":         {[]string{`UPDATE audit_events SET hash = repeat('0', 64) WHERE organization = 'org_a' AND sequence = 5`}, "line 5 has a hash that does not follow"},
		"a line removed":       {[]string{`DELETE FROM audit_events WHERE organization = 'org_a' AND sequence = 3`}, "line 3 is missing: the events have api_key.issued"},
		"the first removed":    {[]string{`DELETE FROM audit_events WHERE organization = 'org_a' AND sequence = 1`}, "line 1 is missing"},
		"the tail cut off":     {[]string{`DELETE FROM audit_events WHERE organization = 'org_a' AND sequence > 5`}, "line 6 is missing"},
		"all removed":          {[]string{`DELETE FROM audit_events WHERE organization = 'org_a'`}, "line 1 is missing"},
		"a line added":         {[]string{`INSERT INTO audit_events SELECT organization, 28, at, action, actor_kind, actor, actor_name, role, address, client, request, target_kind, target, target_name, before, after, stream, version, position + 1000, hash FROM audit_events WHERE organization = 'org_a' AND sequence = 27`}, "line 28 was added: no event has"},
		"two lines exchanged":  {[]string{`UPDATE audit_events SET sequence = sequence + 100 WHERE organization = 'org_a' AND sequence IN (3, 4)`, `UPDATE audit_events SET sequence = 207 - sequence - 100 WHERE organization = 'org_a' AND sequence > 100`}, "line 3 was changed"},
		"removed and repaired": {[]string{`DELETE FROM audit_events WHERE organization = 'org_a' AND sequence = 4`, `UPDATE audit_events SET sequence = sequence + 99 WHERE organization = 'org_a' AND sequence > 4`, `UPDATE audit_events SET sequence = sequence - 100 WHERE organization = 'org_a' AND sequence > 100`, repaired}, "line 4 was changed"},
		"edited and repaired":  {[]string{`UPDATE audit_events SET actor = 'mem_x' WHERE organization = 'org_a' AND sequence = 4`, repaired}, "line 4 was changed: actor"},
		"somebody else's":      {[]string{`DELETE FROM audit_events WHERE organization = 'org_b'`}, ""},
	} {
		for _, statement := range test.tamper {
			if statement == repaired {
				rehash(t, pool)
			} else if err := asSystem(t, pool, statement); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		check := checkAudit(t, pool, "org_a")
		switch {
		case test.want == "" && (check.Faults != nil || check.Lines != perOrganization):
			t.Errorf("%s: %d lines, found %v", name, check.Lines, check.Faults)
		case test.want != "" && (len(check.Faults) == 0 || !strings.Contains(check.Faults[0].String(), test.want)):
			t.Errorf("%s: found %v, want %q first", name, check.Faults, test.want)
		}
		restore(t, pool)
	}
}

// repaired stands for rehash, which an expert could do, too.
const repaired = "repair the chain"

// rehash computes the hashes again from the lines.
func rehash(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	head := tenants.AuditEvent{Hash: tenants.AuditStart}
	lines, err := audit.NewStore(query.NewReader(pool)).Events(t.Context(), "org_a", tenants.AuditFilter{Organization: "org_a"}, 0, 100)
	testenv.Must(t, err)
	slices.Reverse(lines)
	for _, line := range lines {
		head = line.Following(head.Sequence, head.Hash)
		testenv.Must(t, asSystem(t, pool, `UPDATE audit_events SET hash = $1 WHERE organization = 'org_a' AND sequence = $2`, head.Hash, head.Sequence))
	}
}

func restore(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{`DELETE FROM audit_events`, `INSERT INTO audit_events SELECT * FROM kept`} {
		testenv.Must(t, asSystem(t, pool, statement))
	}
}

// A replica without an audit leaves lines out; the
// next append writes them, in the order of commits.
func TestAuditCatchesUp(t *testing.T) {
	pool := tenantstest.OpenOwned(t)
	want := checkAudit(t, pool, "org_a")
	disableTriggers(t, pool)
	testenv.Must(t, asSystem(t, pool, `DELETE FROM audit_events WHERE organization = 'org_a' AND sequence > 3`))
	begin(t, pool, 1)
	got := checkAudit(t, pool, "org_a")
	if got.Faults != nil || got.Lines != want.Lines+1 {
		t.Errorf("%d lines, %v", got.Lines, got.Faults)
	}
}

// Lines of concurrent decisions have no gap and follow from each other.
func TestAuditUnderConcurrency(t *testing.T) {
	pool := tenantstest.Open(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { begin(t, pool, i) })
	}
	group.Wait()
	if got := checkAudit(t, pool, "org_a"); got.Faults != nil || got.Lines != perOrganization+20 {
		t.Errorf("%d lines, %v", got.Lines, got.Faults)
	}
}

// begin appends an event of org_a in a stream of its own.
func begin(t *testing.T, pool *pgxpool.Pool, i int) {
	t.Helper()
	project := fmt.Sprintf("prj_a%d", i)
	stream := eventstore.Stream{Organization: "org_a", Name: "project/" + project}
	created := tenants.ProjectCreated{Project: project, Organization: "org_a", Name: "P", At: tenantstest.Noon}
	if err := projections.NewEvents(pool).Append(t.Context(), stream, 0, nil, created); err != nil {
		t.Error(err)
	}
}

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
