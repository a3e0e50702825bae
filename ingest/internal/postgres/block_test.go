package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// asSystem runs fn in a transaction that sees all organizations.
func asSystem(t *testing.T, pool *pgxpool.Pool, fn func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		return fn(t.Context(), tx)
	})
	testenv.Must(t, err)
}

// days creates partitions for consecutive days of one retention.
func days(t *testing.T, pool *pgxpool.Pool, retention int, first time.Time, many int) {
	t.Helper()
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		blocks := map[day][]*Block{}
		for i := range many {
			blocks[dayOf(retention, first.AddDate(0, 0, i))] = nil
		}
		return ensureDays(ctx, tx, blocks)
	})
}

var firstDay = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// Headers are read in order from an index of one partition, from the
// start of a page: without a sort, other filters or other partitions.
func TestHeadersComeOutOfAnIndex(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	days(t, pool, 90, firstDay, 4)
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO blocks SELECT 'org_' || i % 3, 'prj_' || i % 30, '2026-11-01'::timestamptz + i * interval '12 seconds',
			gen_random_uuid(), i * 12 - CASE WHEN i % 50 = 0 THEN 90000 ELSE 0 END, 0, i * 12 + 20, 0, 4, '{0,0,1,0,0,0}', 100, '', false, '', '', '', NULL, NULL, NULL, 90, 0, NULL, CASE WHEN i % 10 = 0 THEN 2 END
			FROM generate_series(0, 20000) AS i`)
		return err
	})
	if _, err := pool.Exec(t.Context(), `ANALYZE blocks`); err != nil {
		t.Fatal(err)
	}
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
		for _, wide := range []bool{false, true} {
			h := &headers{reach: reach{day: dayOf(90, firstDay.AddDate(0, 0, 1)), wide: wide}, behind: search.Start.Seen}
			queries := []*headerQuery{newHeaderQuery("org_1", &search, h)}
			if !search.OldestFirst && !wide {
				excluding := *h
				excluding.bundles.begun = true
				queries = append(queries, newBundleQuery("org_1", &search, h, []uint64{1}, 10), newHeaderQuery("org_1", &search, &excluding))
			}
			for _, q := range queries {
				whole := explain(t, pool, q.text.String(), q.args)
				if strings.Contains(whole, "Sort  ") || strings.Contains(whole, "Filter: (project") || strings.Count(whole, "Index Scan using") != 1 ||
					strings.Contains(whole, "bundled IS NOT NULL") || strings.Contains(whole, "bundle IS NULL") || !strings.Contains(whole, "blocks_90_20261102") {
					t.Errorf("%s: %s\n%s", name, q.text.String(), whole)
				}
			}
		}
	}
}

// Blocks to merge are read from an index of small blocks, in order of
// receipt, and removed by key, in one partition.
func TestSmallBlocksComeOutOfAnIndex(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	days(t, pool, 90, firstDay, 4)
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO blocks SELECT 'org_' || i % 3, 'prj_' || i % 30, '2026-11-01'::timestamptz + i * interval '12 seconds',
			gen_random_uuid(), i * 12, 0, i * 12 + 20, 0, 4, '{0,0,1,0,0,0}', CASE WHEN i % 10 = 0 THEN 100 ELSE 70000 END, '', false, '', '', '', NULL, NULL, NULL, 90, 0 FROM generate_series(0, 20000) AS i`)
		return err
	})
	h := projectDay{"org_1", "prj_1", dayOf(90, firstDay.AddDate(0, 0, 1))}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			if _, err := pool.Exec(t.Context(), `ANALYZE blocks`); err != nil {
				t.Fatal(err)
			}
		}
		listed := explain(t, pool, smallQuery, h.queryArgs())
		if strings.Contains(listed, "Sort  ") || strings.Contains(listed, "text_bytes") || strings.Count(listed, "Index Scan using blocks_90_20261102") != 1 {
			t.Errorf("analyzed %t: %s", analyzed, listed)
		}
		taken := explain(t, pool, takeQuery, append(h.queryArgs(), []time.Time{firstDay}, []string{"00000000-0000-4000-8000-000000000000"}))
		if strings.Count(taken, "Index Scan using blocks_90_20261102_pkey") != 1 || !strings.Contains(taken, "received_at = t.received_at") {
			t.Errorf("analyzed %t: %s", analyzed, taken)
		}
	}
}

func explain(t *testing.T, pool *pgxpool.Pool, query string, args []any) string {
	t.Helper()
	var plan []string
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, planning); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `EXPLAIN `+query, args...)
		if err == nil {
			plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return strings.Join(plan, "\n")
}

// A page locks only partitions that it reads and keeps no locks: as few
// for a year of log as for a day.
func TestAPageLocksFewPartitions(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	const many = 120
	days(t, pool, 90, firstDay, many)
	store := NewStore(Config{Readers: pool, Limits: DefaultLimits(), Clock: func() time.Time { return firstDay }, Metrics: prometheus.NewRegistry()})
	var blocks []Block
	for i := range many {
		at := firstDay.AddDate(0, 0, i).Add(12 * time.Hour)
		var builder ingest.Builder
		builder.Add(ingest.Stored{Place: ingest.Place{Time: ingest.InstantOf(at), Index: i}, ReceivedAt: at, Text: []byte(`{}`)})
		blocks = append(blocks, Block{Block: builder.Build(), ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Organization: "org_1", Project: "prj_1", Retention: 90})
	}
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error { return store.Keep(ctx, tx, blocks) })
	err := pg.Snapshot(t.Context(), pool, func(tx pgx.Tx) error {
		search := &ingest.Search{Limit: 10}
		scan := scan{
			ctx: t.Context(), store: store, tx: tx, organization: "org_1", search: search, ends: time.Now().Add(time.Minute), most: DefaultLimits().Bytes,
			unpacked: new(unpacked),
		}
		if err := scan.begin(); err != nil {
			return err
		}
		found, err := search.Find(&scan)
		if err != nil {
			return err
		}
		fetched, locks := 0, 0
		for _, h := range scan.headers {
			if h.begun {
				fetched++
			}
		}
		err = tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'`).Scan(&locks)
		if len(found.Found) != 10 || fetched > 12 || locks > 12 {
			t.Errorf("%d entries out of %d partitions of %d, with %d locks", len(found.Found), fetched, len(scan.headers), locks)
		}
		return err
	})
	testenv.Must(t, err)
}
