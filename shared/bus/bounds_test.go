package bus_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
)

// A lane that was stopped stays stopped, however long ago its first record came: its last ones may
// be in the log, and are not applied without those before them.
func TestStoppedLanesStay(t *testing.T) {
	pool := pgtest.Open(t, "bus", bus.Migrations())
	bustest.AsSystem(t, pool, `INSERT INTO bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since, halted)
		VALUES ('org_1', 'g', 't', 0, gen_random_uuid(), 1, 9, 9, 9, now() - interval '1 year', 'records are gone')`)
	pruner := prune.New(prune.Config{Pool: pool, Tables: bus.Tables, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	if err := pruner.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := bustest.Deferred(pool); err != nil || n != 1 {
		t.Errorf("%d lanes are left, %v, want the one that was stopped", n, err)
	}
}
