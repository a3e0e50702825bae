package groups

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Reads take turns by organization.
func TestReadsTakeTurns(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	service := New(Config{Projects: identity.NewDirectory(), Reads: pool, Concurrency: 4, Clock: time.Now, Metrics: prometheus.NewRegistry()})
	limitertest.Check(t, 4, 16, func(ctx context.Context, organization string, work func()) error {
		return service.read(ctx, organization, func(pgx.Tx, pg.Organization) error {
			work()
			return nil
		})
	})
}

// A page whose search timed out is incomplete and has a cursor.
func TestPagesHaveATime(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO error_groups
				(organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, levels, environments, samples, similar_hash, why, expires)
			SELECT 'acme', 'grp_' || md5(n::text), 'shop', 'T', 'T', '', 1, at, at, date_trunc('minute', at), 8, '{}', 0, '\x00', '{}', '2027-01-01'
			  FROM generate_series(1, 5000) AS n, LATERAL (SELECT timestamptz '2026-11-20' + n * interval '1 s') AS a (at)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		now = now.Add(time.Minute) // each look takes a minute
		return now
	}
	service := New(Config{Projects: identity.NewDirectory(), Reads: pool, Concurrency: 1, Clock: clock, Metrics: prometheus.NewRegistry()})
	query := postgres.GroupQuery{Project: "shop", Words: []string{"nothing"}, Limit: 100}
	for pages := 1; ; pages++ {
		page, err := service.Groups(t.Context(), "acme", query)
		if err != nil || len(page.Groups) != 0 || page.Incomplete != (page.Next != nil) {
			t.Fatalf("page %d: %+v, %v", pages, page, err)
		}
		if page.Next == nil {
			if pages != 3 {
				t.Errorf("the end is reached on page %d", pages)
			}
			break
		}
		query.After = *page.Next
	}
}
