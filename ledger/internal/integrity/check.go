package integrity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of one claim, which keep checks a small part of the work.
const (
	claimedRanges = 100
	checkedBooks  = 20
)

// A Report counts the checks and lists their violations.
type Report struct {
	Rounds     int64              // of this process
	Ranges     int64              // compared with their transfers
	Reread     int64              // read again from the log
	Violations []ledger.Violation // the first 100
	At         time.Time          // of the last round; zero before it
}

// A Log compares ranges of one partition, in offset order, with the log.
type Log interface {
	Check(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, error)
}

// A Checker checks what was applied: each range against its transfers;
// for each partition it claims, the books of the latest range against
// their transfers (see postgres.BookCheck); and single ranges against
// the log, up to a hundredth of the records. Replicas share the ranges.
// Each compares every organization with its decisions twice a minute.
// Violations are logged as errors.
type Checker struct {
	CheckerConfig
	metrics *checkMetrics
	books   postgres.BookCheck
	swept   time.Time // when all organizations were last compared

	mu     sync.Mutex
	report Report
}

// CheckerConfig configures a Checker.
type CheckerConfig struct {
	Pool     *pgxpool.Pool
	Log      Log
	Kept     ledger.Retention
	Interval time.Duration
	Clock    func() time.Time
	Logger   *slog.Logger
	Metrics  prometheus.Registerer
}

// NewChecker returns a Checker.
func NewChecker(config CheckerConfig) *Checker {
	return &Checker{CheckerConfig: config, metrics: newCheckMetrics(config.Metrics)}
}

// Report returns the results so far.
func (c *Checker) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

// Run checks new ranges every Interval until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, c.Interval, c.RunOnce, lifecycle.Warn(c.Logger, "cannot check the books"))
}

// RunOnce is a round. It checks until no unclaimed range is left,
// except those booked during its last claim.
func (c *Checker) RunOnce(ctx context.Context) error {
	if err := pg.InTxAsSystem(ctx, c.Pool, func(tx pgx.Tx) error { return postgres.FollowRanges(ctx, tx) }); err != nil {
		return fmt.Errorf("cannot begin to check ranges: %w", err)
	}
	for {
		if more, err := c.checkClaimed(ctx); !more || err != nil {
			return errors.Join(err, c.joinRanges(ctx), c.sweep(ctx), c.endRound(ctx))
		}
	}
}

// joinRanges joins what is checked.
func (c *Checker) joinRanges(ctx context.Context) error {
	err := pg.InTxAsSystem(ctx, c.Pool, func(tx pgx.Tx) error { return postgres.JoinRanges(ctx, tx, c.Clock()) })
	if err != nil {
		return fmt.Errorf("cannot join checked ranges: %w", err)
	}
	return nil
}

// checkClaimed claims ranges and checks them, and reports whether there
// are more. Claimed ranges are not checked again, even after a failure.
func (c *Checker) checkClaimed(ctx context.Context) (more bool, err error) {
	ranges, found, err := c.checkRanges(ctx)
	if err != nil || len(ranges) == 0 {
		return false, err
	}
	partitions := byPartition(ranges)
	ofBooks, err := c.checkBooks(ctx, latestOf(partitions))
	ofLog, reread, failed := c.reread(ctx, partitions)
	c.note(len(ranges), reread, slices.Concat(found, ofBooks, ofLog))
	return hasFull(partitions), errors.Join(err, failed)
}

// hasFull reports whether a partition has as many ranges as a claim
// takes. Where none has, the round ends: on a busy ledger there would
// always be more.
func hasFull(partitions map[int][]ledger.Range) bool {
	for _, ranges := range partitions {
		if len(ranges) == claimedRanges {
			return true
		}
	}
	return false
}

// latestOf returns the last range of each partition, one for each
// transaction: its other ranges lead to the same books.
func latestOf(partitions map[int][]ledger.Range) []ledger.Range {
	lasts := map[int64]ledger.Range{}
	for _, ranges := range partitions {
		last := ranges[len(ranges)-1]
		lasts[last.Booked.UnixMicro()] = last
	}
	return slices.Collect(maps.Values(lasts))
}

// checkRanges compares ranges with their transfers, in the claiming transaction.
func (c *Checker) checkRanges(ctx context.Context) (ranges []ledger.Range, found []ledger.Violation, err error) {
	err = pg.InTxAsSystem(ctx, c.Pool, func(tx pgx.Tx) error {
		if ranges, err = postgres.ClaimRanges(ctx, tx, claimedRanges); err != nil {
			return err
		}
		if err = postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		found, err = postgres.CheckRanges(ctx, tx, ranges)
		return err
	})
	return ranges, found, err
}

// checkBooks compares books of the ranges' transactions with their
// transfers, and their usage.
func (c *Checker) checkBooks(ctx context.Context, of []ledger.Range) (found []ledger.Violation, err error) {
	now := c.Clock()
	err = ofAllDays(ctx, c.Pool, func(tx pgx.Tx) error {
		for _, r := range of {
			violations, err := c.checkBooksOf(ctx, tx, r, now)
			if err != nil {
				return err
			}
			found = append(found, violations...)
		}
		return nil
	})
	return found, err
}

// ofAllDays runs fn in a snapshot of all organizations whose days are not
// folded meanwhile.
func ofAllDays(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	return pg.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

func (c *Checker) checkBooksOf(ctx context.Context, tx pgx.Tx, r ledger.Range, now time.Time) ([]ledger.Violation, error) {
	keys, err := postgres.TouchedBy(ctx, tx, r, checkedBooks)
	if err != nil {
		return nil, err
	}
	found, err := c.books.Compare(ctx, tx, keys, now)
	if err != nil {
		return nil, err
	}
	usage, err := postgres.CheckUsage(ctx, tx, r, keys)
	return append(found, usage...), err
}

// alwaysReread is how many records are always read again. Beyond them
// it is a hundredth.
const alwaysReread = 1000

// reread compares a random range of each partition with the log and
// returns how many it compared. After the first it stops at a hundredth
// of the records, as reading costs as much as applying.
func (c *Checker) reread(ctx context.Context, partitions map[int][]ledger.Range) (found []ledger.Violation, reread int, err error) {
	records, most := 0, max(alwaysReread, recordsOf(partitions)/100)
	for _, ranges := range partitions {
		if records >= most {
			break
		}
		one := ranges[rand.IntN(len(ranges)):][:1] //nolint:gosec // a sample
		violations, err := c.Log.Check(ctx, one)
		if err != nil {
			return found, reread, fmt.Errorf("cannot compare a range with the log: %w", err)
		}
		found, reread, records = append(found, violations...), reread+1, records+one[0].Records
	}
	return found, reread, nil
}

// recordsOf counts the records of ranges.
func recordsOf(partitions map[int][]ledger.Range) (n int) {
	for _, ranges := range partitions {
		for _, r := range ranges {
			n += r.Records
		}
	}
	return n
}

func (c *Checker) note(ranges, reread int, found []ledger.Violation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Ranges += int64(ranges)
	c.report.Reread += int64(reread)
	c.metrics.checked(ranges, reread, found)
	for _, v := range found {
		c.Logger.Error("an invariant of the books does not hold", slog.String("invariant", v.Invariant), slog.String("detail", v.Detail))
		if len(c.report.Violations) < 100 {
			c.report.Violations = append(c.report.Violations, v)
		}
	}
}

// endRound publishes the progress of all replicas.
func (c *Checker) endRound(ctx context.Context) error {
	var through contract.Positions
	var oldest time.Time
	err := pg.InTxAsSystem(ctx, c.Pool, func(tx pgx.Tx) (err error) {
		through, oldest, err = postgres.CheckedRanges(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read what is checked: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Rounds++
	c.report.At = c.Clock()
	c.metrics.ended(through, oldest, c.report.At)
	return nil
}

// Verify checks the whole database, and the log as far as it is kept,
// and returns the violations.
func Verify(ctx context.Context, pool *pgxpool.Pool, log Log, kept ledger.Retention, now time.Time) ([]ledger.Violation, error) {
	found, ranges, err := verifyDatabase(ctx, pool, kept, now)
	if err != nil {
		return nil, err
	}
	for _, partition := range byPartition(ranges) {
		violations, err := log.Check(ctx, partition)
		if err != nil {
			return nil, err
		}
		found = append(found, violations...)
	}
	return found, nil
}

func verifyDatabase(ctx context.Context, pool *pgxpool.Pool, kept ledger.Retention, now time.Time) (
	found []ledger.Violation, ranges []ledger.Range, err error) {
	err = ofAllDays(ctx, pool, func(tx pgx.Tx) error {
		if found, err = postgres.Verify(ctx, tx, kept, now); err != nil {
			return err
		}
		ranges, err = allRanges(ctx, tx)
		return err
	})
	return found, ranges, err
}

// byPartition groups ranges by partition, in offset order.
func byPartition(ranges []ledger.Range) map[int][]ledger.Range {
	split := map[int][]ledger.Range{}
	for _, r := range ranges {
		split[r.Partition] = append(split[r.Partition], r)
	}
	for _, partition := range split {
		slices.SortFunc(partition, func(a, b ledger.Range) int { return cmp.Compare(a.First, b.First) })
	}
	return split
}

func allRanges(ctx context.Context, tx pgx.Tx) (all []ledger.Range, err error) {
	positions, err := postgres.Positions(ctx, tx)
	if err != nil {
		return nil, err
	}
	for partition := range positions {
		for from := int64(0); ; {
			ranges, err := postgres.RangesOf(ctx, tx, partition, from, claimedRanges)
			if err != nil {
				return nil, err
			}
			if len(ranges) == 0 {
				break
			}
			from, all = ranges[len(ranges)-1].Next, append(all, ranges...)
		}
	}
	return all, nil
}

// checkMetrics count the checks and their violations.
type checkMetrics struct {
	rounds, ranges, reread prometheus.Counter
	violations             *prometheus.CounterVec
	verified               *prometheus.GaugeVec
	lag, sweptAt           prometheus.Gauge
}

func newCheckMetrics(registerer prometheus.Registerer) *checkMetrics {
	metrics := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return metrics.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &checkMetrics{
		rounds: counter("weir_ledger_check_rounds_total", "Rounds of checks that came to their end."),
		ranges: counter("weir_ledger_checked_ranges_total", "Ranges of the log that were compared with their transfers."),
		reread: counter("weir_ledger_reread_ranges_total", "Ranges that were read again from the log and compared."),
		violations: metrics.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_ledger_violations_total", Help: "Times that an invariant of the books did not hold. Alert above 0.",
		}, []string{"invariant"}),
		verified: metrics.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_ledger_verified_offset", Help: "Through which offset of weir.logs.v1 the replicas have checked what was applied.",
		}, []string{"partition"}),
		lag: metrics.NewGauge(prometheus.GaugeOpts{
			Name: "weir_ledger_check_lag_seconds", Help: "Age of the oldest range that no replica had checked at the end of a round; 0 where all were.",
		}),
	}
	m.sweptAt = metrics.NewGauge(prometheus.GaugeOpts{
		Name: "weir_ledger_decisions_checked_timestamp_seconds",
		Help: "Unix time at which every organization was last compared with what was decided about it; 0 before the first time.",
	})
	for _, invariant := range ledger.Invariants() {
		m.violations.WithLabelValues(invariant) // starts at 0, so that an alert sees the first increase
	}
	return m
}

// checked records one claim.
func (m *checkMetrics) checked(ranges, reread int, found []ledger.Violation) {
	m.ranges.Add(float64(ranges))
	m.reread.Add(float64(reread))
	for _, violation := range found {
		m.violations.WithLabelValues(violation.Invariant).Inc()
	}
}

// swept records that all organizations were compared.
func (m *checkMetrics) swept(at time.Time) { m.sweptAt.Set(float64(at.Unix())) }

// ended records a round: the offsets through which all is checked, and
// when the oldest unchecked range was booked.
func (m *checkMetrics) ended(through contract.Positions, oldest, now time.Time) {
	m.rounds.Inc()
	for partition, next := range through {
		m.verified.WithLabelValues(strconv.Itoa(partition)).Set(float64(next))
	}
	m.lag.Set(0)
	if !oldest.IsZero() {
		m.lag.Set(now.Sub(oldest).Seconds())
	}
}
