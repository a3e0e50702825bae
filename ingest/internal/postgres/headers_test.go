package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Headers come out of an index in their order, from the place on where a page begins: none is sorted, and none is passed over
// but those that an index passes over.
func TestHeadersComeOutOfAnIndex(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		for day := 1; day <= 3; day++ {
			_, err := tx.Exec(t.Context(), fmt.Sprintf(`CREATE TABLE blocks_2026110%[1]d PARTITION OF blocks FOR VALUES FROM ('2026-11-0%[1]d') TO ('2026-11-0%[2]d')`, day, day+1))
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO blocks SELECT 'org_' || i % 3, 'prj_' || i % 30, '2026-11-01'::timestamptz + i * interval '12 seconds',
			gen_random_uuid(), i * 12 - CASE WHEN i % 50 = 0 THEN 90000 ELSE 0 END, 0, i * 12 + 20, 0, 4, 1, 100, '', '' FROM generate_series(0, 20000) AS i`)
		return err
	}))
	_, err := pool.Exec(t.Context(), `ANALYZE blocks`)
	must(err)
	after := &ingest.Place{Time: ingest.Instant{Seconds: 100_000}}
	resumed := ingest.Position{After: after, Seen: &ingest.Key{First: after.Time}}
	for name, search := range map[string]ingest.Search{
		"the newest":    {},
		"the oldest":    {OldestFirst: true},
		"behind":        {Start: ingest.Position{After: after}, Levels: 4},
		"behind, asc":   {Start: ingest.Position{After: after}, OldestFirst: true},
		"further":       {Start: resumed},
		"further, asc":  {Start: resumed, OldestFirst: true},
		"of a project":  {Start: ingest.Position{After: after}, Project: "prj_1"},
		"between times": {From: &ingest.Instant{Seconds: 99_000}, To: &after.Time, Project: "prj_1", OldestFirst: true},
	} {
		for _, q := range headerQueries("org_1", &search) {
			var plan []string
			must(pg.ReadAs(t.Context(), pool, "org_1", func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), byIndexAlone); err != nil {
					return err
				}
				rows, err := tx.Query(t.Context(), `EXPLAIN `+q.text.String()+` LIMIT 64`, append([]any{pgx.QueryExecModeSimpleProtocol}, q.args...)...)
				if err == nil {
					plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
				}
				return err
			}))
			if whole := strings.Join(plan, "\n"); strings.Contains(whole, "Sort  ") || strings.Contains(whole, "Filter: (project") || !strings.Contains(whole, "Index Scan using") {
				t.Errorf("%s: %s\n%s", name, q.text.String(), whole)
			}
		}
	}
}
