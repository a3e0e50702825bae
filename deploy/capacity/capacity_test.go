package capacity_test

import (
	"math"
	"testing"

	"github.com/weirlog/weir/deploy/capacity"
)

var load = capacity.Load{EntriesPerSecond: 1000, EntryBytes: 325, RetentionDays: 90, Peak: 3, Batch: 100, LogDays: 7, TransferMonths: 25}

// At 1,000 entries a second, what deploy/docs/size.md works out: 300 GB a
// copy in Kafka for a week, 410 GB in the log store for 90 days; a third is left free.
func TestDisks(t *testing.T) {
	plan := capacity.Measured.For(load)
	kafka := 86_400_000 * 332.0 * 7 * 3 / float64(plan.Brokers.Count) * 1.5
	postgres := (86_400_000*53.0*90 + plan.Ledger) * 1.5
	if near := func(a, b float64) bool { return math.Abs(a-b) < b/1000 }; !near(plan.Brokers.Disk, kafka) || !near(plan.Postgres.Disk, postgres) {
		t.Errorf("Kafka %.0f, want %.0f; PostgreSQL %.0f, want %.0f", plan.Brokers.Disk, kafka, plan.Postgres.Disk, postgres)
	}
	if plan.Brokers.Count != 3 || plan.Postgres.Count != 2 || plan.Services.Count != 2 || plan.Partitions != 12 || plan.Installations != 1 {
		t.Errorf("the least installation is %+v", plan)
	}
}

// Up to MaxEntries PostgreSQL holds all; beyond, ClickHouse holds what is older than two days.
func TestWhereAnotherStoreIsNeeded(t *testing.T) {
	most := capacity.Measured.For(load).MaxEntries
	for share, elsewhere := range map[float64]bool{0.99: false, 1.01: true} {
		load := load
		load.EntriesPerSecond = most * share
		plan := capacity.Measured.For(load)
		if plan.ClickHouse.Count > 0 != elsewhere || plan.Objects > 0 != elsewhere {
			t.Errorf("%.2f of the most: %+v", share, plan)
		}
	}
}

// More of anything never needs less of any machine, in sum over all installations, and no machine exceeds its bounds.
func TestMoreNeedsMore(t *testing.T) {
	more := map[string]func(l *capacity.Load, by float64){
		"entries":   func(l *capacity.Load, by float64) { l.EntriesPerSecond *= by },
		"bytes":     func(l *capacity.Load, by float64) { l.EntryBytes *= by },
		"retention": func(l *capacity.Load, by float64) { l.RetentionDays *= by },
		"peak":      func(l *capacity.Load, by float64) { l.Peak *= by },
		"transfers": func(l *capacity.Load, by float64) { l.TransferMonths *= by },
	}
	price := capacity.Prices{Core: 30, Disk: 0.1, Object: 0.025}
	for name, grow := range more {
		load, before := load, 0.0
		for range 40 {
			plan := capacity.Measured.For(load)
			c := capacity.Measured
			if plan.Postgres.Disk > c.ServerBytes || float64(plan.Postgres.Cores) > c.ServerCores || plan.Brokers.Disk > c.MachineBytes {
				t.Fatalf("%s: a machine is too large: %+v", name, plan)
			}
			now := price.Price(plan)
			if now < before*0.85 && plan.ClickHouse.Count == 0 { // SSD that is no longer needed is cheaper elsewhere
				t.Errorf("%s: %+v costs %.0f, and less of it %.0f", name, load, now, before)
			}
			before = now
			grow(&load, 1.3)
		}
	}
}

func TestLoadsNobodyHas(t *testing.T) {
	for _, spoil := range []func(l *capacity.Load){
		func(l *capacity.Load) { l.EntriesPerSecond = 0 },
		func(l *capacity.Load) { l.EntryBytes = -1 },
		func(l *capacity.Load) { l.RetentionDays = math.NaN() },
		func(l *capacity.Load) { l.Batch = math.Inf(1) },
		func(l *capacity.Load) { l.Peak = 0.5 },
	} {
		load := load
		if spoil(&load); load.Validate() == nil {
			t.Errorf("%+v was taken", load)
		}
	}
	if err := load.Validate(); err != nil {
		t.Error(err)
	}
}
