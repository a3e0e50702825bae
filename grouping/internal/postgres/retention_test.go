package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// pruneAt prunes the tables as of a time.
func pruneAt(t *testing.T, pool *pgxpool.Pool, now time.Time) {
	t.Helper()
	clock := func() time.Time { return now }
	err := prune.New(prune.Config{
		Pool: pool, Tables: postgres.Tables, Clock: clock, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// rows counts those of each table, as the system.
func rows(t *testing.T, pool *pgxpool.Pool) (counts []int) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT ARRAY[(SELECT count(*) FROM error_groups), (SELECT count(*) FROM group_hashes), (SELECT count(*) FROM occurrences),
			(SELECT count(*) FROM group_budgets)]`).Scan(&counts)
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// kept is an occurrence that was accepted after
// noon, and whose entry is kept for some days.
func kept(typ string, accepted time.Duration, days int) grouping.Occurrence {
	o := seen(typ, 0)
	o.Accepted = noon.Add(accepted)
	o.Expires = grouping.Expiry(o.Accepted, days)
	return o
}

const day = 24 * time.Hour

// A group expires with its hashes and samples, 30 days after
// the retention of its last entries, whatever their own times.
func TestGroupsExpire(t *testing.T) {
	pool := open(t)
	late := kept("Late", 0, 7)
	late.At = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	mustApply(t, pool, kept("Once", 0, 7), late, late, kept("Again", 0, 7), kept("Again", 20*day, 7), kept("Long", 0, 365))
	mustApply(t, pool, late) // seen twice: has stricter hashes
	before := rows(t, pool)
	pruneAt(t, pool, noon.Add(37*day))
	if after := rows(t, pool); !slices.Equal(after[:3], before[:3]) || after[3] != 0 {
		t.Errorf("on the last day %v are left of %v", after, before)
	}
	pruneAt(t, pool, noon.Add(38*day))
	var types []string
	for _, g := range list(t, pool, "acme", postgres.GroupQuery{Project: "shop"}) {
		types = append(types, g.Type)
	}
	slices.Sort(types)
	if !slices.Equal(types, []string{"Again", "Long"}) {
		t.Errorf("left are %v", types)
	}
	pruneAt(t, pool, noon.Add(397*day))
	if left := rows(t, pool); !slices.Equal(left, []int{0, 0, 0, 0}) {
		t.Errorf("rows that are left: %v", left)
	}
}

// A writer whose group expires before it is locked fails, so that
// it starts over and creates the group. A locked group stays.
func TestExpiryBesideWriters(t *testing.T) {
	pool := open(t)
	mustApply(t, pool, kept("A", 0, 7))
	writer := func(between func()) error {
		return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := pg.AsSystem(t.Context(), tx); err != nil {
				return err
			}
			tally := grouping.NewTally()
			tally.Add(kept("A", 60*day, 7))
			_, err := postgres.Writer{NewGroups: grouping.Budgets{Project: 10, Organization: 10}}.Apply(t.Context(), afterHashes{tx, between}, tally.Counts())
			if err == nil {
				pruneAt(t, pool, noon.Add(61*day))
			}
			return err
		})
	}
	if err := writer(func() {}); err != nil {
		t.Fatal(err)
	}
	if left := rows(t, pool); left[0] != 1 {
		t.Fatalf("a group that was just seen is gone: %v", left)
	}
	if err := writer(func() { pruneAt(t, pool, noon.Add(200*day)) }); err == nil {
		t.Error("a writer counts errors in a group that is gone")
	}
	mustApply(t, pool, kept("A", 60*day, 7))
	if groups := list(t, pool, "acme", postgres.GroupQuery{Project: "shop"}); len(groups) != 1 || groups[0].Title == "" {
		t.Errorf("started over it has %+v", groups)
	}
}

// afterHashes is a transaction that calls before when it first writes groups.
type afterHashes struct {
	pgx.Tx
	before func()
}

func (a afterHashes) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "INSERT INTO error_groups") {
		a.before()
	}
	return a.Tx.Query(ctx, sql, args...)
}
