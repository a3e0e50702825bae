package erasing

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// The reports of a project are erased many at once, after the project, and found through an index: those who append wait meanwhile.
// Reports of projects with a name like it stay, and what is reported later is not kept.
func TestReportsAreErased(t *testing.T) {
	pool, ctx := tenantstest.OpenOwned(t), t.Context()
	for _, project := range []string{"prj_x", "prj_x2", "prj_"} {
		testenv.Must(t, projections.NewEvents(pool).Append(ctx, unitofwork.Stream("org_a", "project", project), 0, nil,
			tenants.ProjectCreated{Project: project, Organization: "org_a", Name: project, At: tenantstest.Noon}))
	}
	testenv.Must(t, projections.NewEvents(pool).Append(ctx, unitofwork.Stream("org_a", "api-key", "key_x"), 0, nil, tenants.APIKeyIssued{
		APIKey: "key_x", Organization: "org_a", Project: "prj_x", Environment: tenants.Dev, Name: "x",
		Digest: tenants.SecretDigest{Hash: strings.Repeat("9", 64), First: "ab12", Last: "9f3e"}, At: tenantstest.Noon,
	}))
	keep := func(id, project string) {
		t.Helper()
		testenv.Must(t, pg.InTx(ctx, pool, func(tx pgx.Tx) error {
			change := tenants.ChangeReported{Project: project, Action: "error_rules.set", TargetKind: "project", Target: project, At: tenantstest.Noon}
			return audit.NewReports(tenantstest.NewWriter(pool)).Keep(ctx, tx, tenants.Report{ID: id, Organization: "org_a", Actor: "mem_a", Change: change})
		}))
	}
	for _, project := range []string{"prj_x", "prj_x2", "prj_"} {
		keep("1", project)
	}
	asSystem := func(act func(tx pgx.Tx) error) { t.Helper(); testenv.Must(t, pg.InTxAsSystem(ctx, pool, act)) }
	asSystem(func(tx pgx.Tx) error { // many more, and other organizations
		_, err := tx.Exec(ctx, `INSERT INTO events (organization, stream, version, name, data, metadata, private)
			SELECT o, 'report/prj_x/' || n, 1, name, data, metadata, private FROM events, generate_series(1, 1200) n, unnest(ARRAY['org_a', 'org_1', 'org_2']) o
			WHERE organization = 'org_a' AND stream LIKE 'report/prj\_x/%'`)
		return err
	})
	asSystem(func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bus_relays (name, position) VALUES ($1, 1000000) ON CONFLICT (name) DO UPDATE SET position = 1000000`, bus.RelayName)
		return err
	})
	_, err := pool.Exec(ctx, `ANALYZE events`)
	testenv.Must(t, err)
	asSystem(func(tx pgx.Tx) error {
		for query, args := range map[string][]any{
			listKeysAndProject: {"org_a", "prj_x", "", streamBatch, tenants.EventName(tenants.APIKeyIssued{})},
			listReports:        {"org_a", "report/prj_x/", "report/prj_x/5", reportBatch},
		} {
			plan, err := list(ctx, tx, `EXPLAIN `+query, args...)
			if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, "events_pkey") || !strings.Contains(text, "stream <") {
				t.Errorf("%v: the plan is\n%s", err, text)
			}
		}
		return nil
	})

	table := events(bus.NewWithdrawals(bus.NewPublication(projections.NewEvents(pool)), tenantstest.Now))
	of := erasure.Deletion{Organization: "org_a", Project: "prj_x"}
	var places []string
	for place := "start"; place != ""; {
		if place == "start" {
			place = ""
		}
		asSystem(func(tx pgx.Tx) (err error) { _, place, err = table.Erase(ctx, tx, of, place, 5000); return err })
		if places = append(places, place); len(places) == 1 {
			keep("late", "prj_x")
		}
	}
	if len(places) != 5 || places[0] != "project/prj_x" {
		t.Errorf("the batches end at %q", places)
	}
	asSystem(func(tx pgx.Tx) error {
		left, err := list(ctx, tx, `SELECT stream FROM events WHERE organization = 'org_a' AND name <> 'erased'
			AND (stream LIKE 'report/%' OR data->>'project' = 'prj_x')`)
		if err != nil || len(left) != 2 || strings.Contains(strings.Join(left, " "), "prj_x/") {
			t.Errorf("left are %q: %v", left, err)
		}
		return err
	})
}
