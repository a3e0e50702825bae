package bus_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
)

// A stopped lane stays stopped whatever its age: its last records may
// be in the log, and are not applied without those before them.
func TestStoppedLanesStay(t *testing.T) {
	pool := pgtest.Open(t, "bus", bus.Migrations())
	bustest.AsSystem(t, pool, `INSERT INTO bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since, halted)
		VALUES ('org_1', 'g', 't', 0, gen_random_uuid(), 1, 9, 9, 9, now() - interval '1 year', 'records are gone')`)
	pruner := prune.New(prune.Config{Pool: pool, Tables: bus.Retention{}.Tables, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	if err := pruner.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := bustest.Deferred(pool); err != nil || n != 1 {
		t.Errorf("%d lanes are left, %v, want the one that was stopped", n, err)
	}
}

// Parked records are deleted after the set number of days, 90 by default.
func TestParkedRecordsAge(t *testing.T) {
	pool := pgtest.Open(t, "bus", bus.Migrations())
	bustest.AsSystem(t, pool, `INSERT INTO bus_parked (organization, group_name, topic, partition, record_offset, record_time, header_names, header_values, reason, failed_at)
		SELECT 'org_1', 'g', 't', 0, days, now(), '{}', '{}', 'no good', now() - make_interval(days => days) FROM unnest(ARRAY[1, 20, 80, 100]) AS days`)
	for _, test := range []struct{ days, left int }{{0, 3}, {30, 2}, {8, 1}} {
		pruner := prune.New(prune.Config{
			Pool: pool, Tables: bus.Retention{ParkedDays: test.days}.Tables, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		})
		if err := pruner.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left int
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return errors.Join(pg.AsSystem(t.Context(), tx), tx.QueryRow(t.Context(), `SELECT count(*) FROM bus_parked`).Scan(&left))
		})
		if err != nil || left != test.left {
			t.Errorf("after %d days %d records are left, %v, want %d", test.days, left, err, test.left)
		}
	}
	if err := (bus.Retention{ParkedDays: 7}).Validate(); err == nil {
		t.Error("parked records may go before their ranges")
	}
}
