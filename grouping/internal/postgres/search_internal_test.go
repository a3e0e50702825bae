package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Every list of groups is an index scan in order of
// minutes: a page costs its groups and those of the
// minute in which it ends, however many groups there are.
func TestListsHaveIndexes(t *testing.T) {
	pool := pgtest.OpenOwned(t, Schema, Migrations()...)
	fill(t, pool)
	since, place := time.Unix(100, 0), GroupCursor{LastSeen: time.Unix(1900, 0), ID: "grp"}
	for _, test := range []struct {
		name, index string
		query       GroupQuery
	}{
		{"all projects", "error_groups_by_minute", GroupQuery{}},
		{"all projects, since and behind a place", "error_groups_by_minute", GroupQuery{From: since, After: place}},
		{"all projects, unresolved ones", "error_groups_by_minute", GroupQuery{Status: "unresolved", Words: []string{"timeout"}}},
		{"one project", "error_groups_of_project_by_minute", GroupQuery{Project: "prj_7", From: since, After: place}},
	} {
		t.Run(test.name, func(t *testing.T) {
			statement, args := test.query.rangeQuery("acme", test.query.After, GroupCursor{}, 100)
			plan := explain(t, pool, statement, args)
			if !strings.Contains(plan, test.index) || !strings.Contains(plan, "Presorted Key: error_groups.seen_minute") {
				t.Errorf("want %s, and only minutes to sort:\n%s", test.index, plan)
			}
		})
	}
}

// fill creates groups in many projects, and
// has the planner's statistics updated.
func fill(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO error_groups
			(organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, levels, environments, samples,
				similar_hash, why, expires, arrived)
			SELECT 'acme', 'grp_' || n, 'prj_' || n % 50, '', '', '', 1, to_timestamp(n), to_timestamp(n), date_trunc('minute', to_timestamp(n), 'UTC'), 8, '{}', 0, '', '{}', 'tomorrow', 'today' FROM generate_series(1, 2000) AS n`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `ANALYZE error_groups`); err != nil {
		t.Fatal(err)
	}
}

// explain is the plan of a statement without sequential scans.
func explain(t *testing.T, pool *pgxpool.Pool, statement string, args []any) string {
	t.Helper()
	var plan []string
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off`); err != nil {
			return err
		}
		if err := pg.AsOrganization(t.Context(), tx, "acme"); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `EXPLAIN `+statement, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
		if err != nil {
			return err
		}
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}
