package integrity

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// unreachableLog can't be read.
type unreachableLog struct{}

func (unreachableLog) Check(context.Context, []ledger.Range) ([]ledger.Violation, error) {
	return nil, errors.New("no broker answers")
}

// countedLog counts how often each range is read again.
type countedLog struct {
	mu    sync.Mutex
	calls int
}

func (l *countedLog) Check(context.Context, []ledger.Range) ([]ledger.Violation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	return nil, nil
}

// Two replicas check each range once, and all in one round; a third
// continues where they ended.
func TestCheckersShareRanges(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	now, log := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), &countedLog{}
	const partitions, ranges = 4, 250
	apply := func(first int) {
		t.Helper()
		book(t, pool, now, partitions, first, ranges)
	}
	newChecker := func() *Checker {
		return NewChecker(CheckerConfig{
			Pool: pool, Log: log, Clock: func() time.Time { return now }, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
		})
	}
	apply(0)
	replicas := []*Checker{newChecker(), newChecker()}
	var wait sync.WaitGroup
	for _, checker := range replicas {
		wait.Go(func() {
			if err := checker.RunOnce(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if err := replicas[0].RunOnce(t.Context()); err != nil { // each skips the other's claims
		t.Fatal(err)
	}
	one, other := replicas[0].Report(), replicas[1].Report()
	if checked := one.Ranges + other.Ranges; checked != partitions*ranges || len(one.Violations)+len(other.Violations) > 0 {
		t.Errorf("%d ranges were checked of %d, by %+v and %+v", checked, partitions*ranges, one, other)
	}
	if want := int64(log.calls); one.Reread+other.Reread != want || want != 3*partitions {
		t.Errorf("%d and %d ranges were read again, want one of each hundred", one.Reread, other.Reread)
	}
	apply(ranges)
	third := newChecker()
	if err := third.RunOnce(t.Context()); err != nil || third.Report().Ranges != partitions*ranges {
		t.Errorf("after a restart: %+v, %v", third.Report(), err)
	}
	if lag := testutil.ToFloat64(third.metrics.lag); lag != 0 {
		t.Errorf("the lag is %v s", lag)
	}
}

// book has n ranges of one record each in every partition.
func book(t *testing.T, pool *pgxpool.Pool, now time.Time, partitions, first, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `WITH applied AS (INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner)
			SELECT $2, $3, p, 1000000, 1, '' FROM generate_series(0, $4 - 1) p ON CONFLICT DO NOTHING)
		INSERT INTO ranges (partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_from, booked_at)
		SELECT p, n, n + 1, 1, 0, 10, 0, $1, $1, $1, $1 FROM generate_series(0, $4 - 1) p, generate_series($5::int, $5 + $6 - 1) n`,
		now, contract.GroupLedger, contract.TopicLogs, partitions, first, n)
	testenv.Must(t, err)
}

// busyLog grows, booked, whenever it is read.
type busyLog struct {
	grow func(length int)
	next int
}

func (l *busyLog) Check(context.Context, []ledger.Range) ([]ledger.Violation, error) {
	if l.next == 10 {
		return nil, errors.New("the round does not end")
	}
	l.grow(l.next)
	l.next++
	return nil, nil
}

// A round ends while bookings continue: those of its last claim are
// left to the next.
func TestRoundsEndUnderLoad(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	log := &busyLog{grow: func(length int) { book(t, pool, now, 1, length, 1) }, next: 1}
	book(t, pool, now, 1, 0, 1)
	checker := NewChecker(CheckerConfig{
		Pool: pool, Log: log, Clock: func() time.Time { return now.Add(time.Second) }, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	for range 2 {
		testenv.Must(t, checker.RunOnce(t.Context()))
	}
	if report := checker.Report(); report.Rounds != 2 || report.Ranges != 2 {
		t.Errorf("two rounds beside bookings: %+v", report)
	}
	if lag := testutil.ToFloat64(checker.metrics.lag); lag != 1 {
		t.Errorf("of what was booked meanwhile the lag is %v s, want 1", lag)
	}
}

// With large ranges a hundredth of the records is read again, not a
// range of each partition.
func TestLittleIsReadAgain(t *testing.T) {
	log := &countedLog{}
	checker := NewChecker(CheckerConfig{Log: log, Metrics: prometheus.NewRegistry()})
	for records, want := range map[int]int{10: 4, 20_000: 1} {
		partitions := map[int][]ledger.Range{}
		for partition := range 4 {
			partitions[partition] = []ledger.Range{{Partition: partition, Records: records}, {Partition: partition, Records: records}}
		}
		if _, reread, err := checker.reread(t.Context(), partitions); err != nil || reread != want {
			t.Errorf("%d ranges of %d records were read again, want %d: %v", reread, records, want, err)
		}
	}
	if log.calls != 5 {
		t.Errorf("the log was read %d times", log.calls)
	}
}

// A violation in the database is recorded at once even if the log can't
// be read: the next round checks other ranges.
func TestCheckerNotesWithoutTheLog(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	checker := NewChecker(CheckerConfig{
		Pool: pool, Log: unreachableLog{}, Clock: func() time.Time { return now }, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	testenv.Must(t, checker.RunOnce(t.Context()))
	_, err := pool.Exec(t.Context(), `WITH applied AS (INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($2, $3, 0, 1, 1, ''))
		INSERT INTO ranges (partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_from, booked_at)
		VALUES (0, 0, 1, 1, 1, 10, 10, $1, $1, $1, $1)`, now, contract.GroupLedger, contract.TopicLogs)
	testenv.Must(t, err)
	if err := checker.RunOnce(t.Context()); err == nil {
		t.Error("the log was read from nowhere")
	}
	report := checker.Report()
	if len(report.Violations) != 1 || report.Violations[0].Invariant != ledger.RangeIsTransfers || !report.At.Equal(now) {
		t.Errorf("report %+v", report)
	}
}

// bookings counts the queries of transfers, and those over more than one booking.
type bookings struct{ queries, spanning atomic.Int64 }

func (b *bookings) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	if strings.Contains(query.SQL, "booked_at BETWEEN $1 AND $2") {
		b.queries.Add(1)
		if from, to := query.Args[0].(time.Time), query.Args[1].(time.Time); !from.Equal(to) {
			b.spanning.Add(1)
		}
	}
	return ctx
}

func (*bookings) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A partition silent for months doesn't cause a sum over these months;
// each transaction is checked alone.
func TestExamineReadsOnlyTheLastBookings(t *testing.T) {
	config := pgtest.Open(t, postgres.Schema, postgres.Migrations()...).Config()
	traced := &bookings{}
	config.ConnConfig.Tracer = traced
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	_, err = pool.Exec(t.Context(), `WITH applied AS (INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner)
			SELECT $2, $3, p, 1, 1, '' FROM generate_series(0, 2) p)
		INSERT INTO ranges (partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_from, booked_at)
		SELECT p, 0, 1, 1, 1, 10, 10, at, at, at, at FROM generate_series(0, 2) p, LATERAL (SELECT $1::timestamptz - (p / 2) * interval '3 months' AS at) at`,
		now, contract.GroupLedger, contract.TopicLogs)
	testenv.Must(t, err)
	days := func(tx pgx.Tx) error { return postgres.EnsureDays(t.Context(), tx, now, now.AddDate(0, -3, 0)) }
	testenv.Must(t, pgx.BeginFunc(t.Context(), pool, days))
	found, err := Examine(t.Context(), pool, &countedLog{}, now, now.AddDate(-1, 0, 0))
	if err != nil || len(found.Violations) != 3 || found.Violations[0].Invariant != ledger.RangeIsTransfers {
		t.Errorf("found %+v, %v, want that no range has transfers", found.Violations, err)
	}
	if queries, spanning := traced.queries.Load(), traced.spanning.Load(); queries != 4 || spanning != 0 {
		t.Errorf("%d questions, %d of them about more than one booking, want for each of two one about where they lie and one about all", queries, spanning)
	}
}
