package postgres

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

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

// kept returns the partitions that a run of the pruner leaves.
func kept(t *testing.T, pool *pgxpool.Pool, now time.Time) (names []string) {
	t.Helper()
	clock := func() time.Time { return now }
	pruner := prune.New(prune.Config{Pool: pool, Tables: func(clock func() time.Time) []prune.Table { return Tables(nil, clock) }, Clock: clock, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, pruner.RunOnce(t.Context()))
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		left, err := loadDays(ctx, tx)
		for _, d := range left {
			names = append(names, strings.TrimPrefix(d.partition(), "blocks_"))
		}
		return err
	})
	return names
}

// keep stores a block of one entry for each retention, received now.
func keep(t *testing.T, pool *pgxpool.Pool, at time.Time, retentions ...int) {
	t.Helper()
	keepLater(t, pool, at, at, retentions...)
}

// keepLater stores blocks received at another clock's time.
func keepLater(t *testing.T, pool *pgxpool.Pool, at, now time.Time, retentions ...int) {
	t.Helper()
	store := NewStore(Config{Readers: pool, Limits: DefaultLimits(), Clock: func() time.Time { return now }, Metrics: prometheus.NewRegistry()})
	var blocks []Block
	for _, retention := range retentions {
		var builder ingest.Builder
		builder.Add(ingest.Stored{Place: ingest.Place{Time: ingest.InstantOf(at)}, ReceivedAt: at, Text: []byte(`{}`)})
		blocks = append(blocks, Block{Block: builder.Build(), ID: "00000000-0000-4000-8000-000000000000", Organization: "org_1", Project: "prj_1", Retention: retention})
	}
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error { return store.Keep(ctx, tx, blocks) })
}

// Days of each retention go separately, once the whole day is past,
// with their index rows.
func TestPartitionsGoPastTheirRetention(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	keep(t, pool, firstDay.Add(23*time.Hour), 7, 30)
	keep(t, pool, firstDay.AddDate(0, 0, 40), 7)
	for _, c := range []struct {
		after time.Duration
		want  []string
	}{
		{8*24*time.Hour - 1, []string{"30_20261101", "7_20261101", "7_20261211"}},
		{8 * 24 * time.Hour, []string{"30_20261101", "7_20261211"}},
		{31*24*time.Hour - 1, []string{"30_20261101", "7_20261211"}},
		{31 * 24 * time.Hour, []string{"7_20261211"}},
	} {
		if got := kept(t, pool, firstDay.Add(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("after %v: %q, want %q", c.after, got, c.want)
		}
	}
	var left int
	asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM block_days`).Scan(&left)
	})
	if left != 1 {
		t.Errorf("%d rows say where blocks lie, want those of the day that is left", left)
	}
}

// A clock a month ahead drops nothing that is kept a day after the newest block.
func TestPartitionsOutlastAClockThatIsAhead(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	keep(t, pool, firstDay, 7)
	keep(t, pool, firstDay.AddDate(0, 0, 7), 7)
	want := []string{"7_20261101", "7_20261108"}
	if got := kept(t, pool, firstDay.AddDate(0, 1, 7)); !slices.Equal(got, want[1:]) {
		t.Errorf("kept %q, want %q: the older day is past its retention a day after the newest", got, want[1:])
	}
	keep(t, pool, firstDay.AddDate(0, 0, 2), 7)
	if got := kept(t, pool, firstDay.AddDate(1, 0, 0)); !slices.Equal(got, []string{"7_20261103", "7_20261108"}) {
		t.Errorf("kept %q", got)
	}
}

// Dropping a partition gives up while it is read, so that others don't
// wait long; the next run succeeds.
func TestDroppingGivesWayToReaders(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	keep(t, pool, firstDay, 7)
	keep(t, pool, firstDay.AddDate(0, 0, 20), 7)
	reader, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	defer func() { _ = reader.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := reader.Exec(t.Context(), `SELECT count(*) FROM blocks`); err != nil {
		t.Fatal(err)
	}
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, _, err := (&blocks{clock: func() time.Time { return firstDay.AddDate(0, 0, 20) }}).Prune(t.Context(), tx)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("%v, want one that names the lock", err)
	}
	testenv.Must(t, reader.Rollback(t.Context()))
	if got := kept(t, pool, firstDay.AddDate(0, 0, 20)); !slices.Equal(got, []string{"7_20261121"}) {
		t.Errorf("kept %q", got)
	}
}

// A run drops two days of a retention, so that a wrong clock does
// limited damage; the rest is still found.
func TestARunDropsTwoDays(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	for i := range 5 {
		keep(t, pool, firstDay.AddDate(0, 0, i), 7, 30)
	}
	ahead := firstDay.AddDate(1, 0, 0)
	keep(t, pool, ahead, 7)
	for _, want := range [][]string{
		{"30_20261103", "30_20261104", "30_20261105", "7_20261103", "7_20261104", "7_20261105", "7_20271101"},
		{"30_20261105", "7_20261105", "7_20271101"},
		{"7_20271101"},
	} {
		if got := kept(t, pool, ahead); !slices.Equal(got, want) {
			t.Errorf("kept %q, want %q", got, want)
		}
		var reaches int
		asSystem(t, pool, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT count(*) FROM block_days`).Scan(&reaches)
		})
		if reaches != len(want) {
			t.Errorf("%d rows say where the blocks of %d days lie", reaches, len(want))
		}
	}
}

// Entries accepted by a slow clock, or stored late, are kept from their
// storage on, as promised.
func TestWhatWouldBePastIsKeptFromNow(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	now := firstDay.AddDate(0, 0, 20).Add(time.Hour)
	keepLater(t, pool, firstDay, now, 7, 30)
	if got := kept(t, pool, now); !slices.Equal(got, []string{"30_20261101", "7_20261121"}) {
		t.Errorf("kept %q", got)
	}
	keepLater(t, pool, now.Add(time.Second), firstDay, 7) // the store's clock is the wrong one
	if got := kept(t, pool, now); !slices.Equal(got, []string{"30_20261101", "7_20261121"}) {
		t.Errorf("kept %q", got)
	}
}

// Partitions are created in one order, whatever the blocks' order, so
// that replicas don't deadlock.
func TestPartitionsAreMadeInOrder(t *testing.T) {
	pool := pgtest.Open(t, Schema, Migrations()...)
	keep(t, pool, firstDay, 90, 30, 8, 7, 6, 5, 4, 3, 2, 1)
	var made []int
	err := pool.QueryRow(t.Context(), `SELECT array_agg(substr(relname, 8)::int ORDER BY c.oid) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
		WHERE inhparent = 'blocks'::regclass`).Scan(&made)
	if err != nil || !slices.IsSorted(made) || len(made) != 10 {
		t.Errorf("made in the order %v, %v", made, err)
	}
}
