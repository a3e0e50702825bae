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
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of what is claimed at once, so that checking stays a
// small part of the work.
const (
	rangesAtOnce = 100
	booksAtOnce  = 20
)

// A Report counts what the checks have looked at, and lists what they have found.
type Report struct {
	Rounds     int64              // of this process
	Ranges     int64              // compared with their transfers
	Reread     int64              // read again from the log
	Violations []ledger.Violation // the first 100
	At         time.Time          // of the last round; zero before it
}

// A Log compares ranges of one partition, in the order of their
// offsets, with the log itself.
type Log interface {
	Check(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, error)
}

// A Checker compares what was applied: each range with its transfers; of what
// it claims of a partition, the books of the latest range with their transfers
// (see postgres.BookCheck); and single ranges with the log, until a hundredth
// is read again. Replicas share the ranges. Findings are logged as errors.
type Checker struct {
	CheckerConfig
	metrics *checkMetrics
	books   postgres.BookCheck

	mu     sync.Mutex
	report Report
}

// CheckerConfig is what a Checker works with.
type CheckerConfig struct {
	Pool     *pgxpool.Pool
	Log      Log
	Interval time.Duration
	Clock    func() time.Time
	Logger   *slog.Logger
	Metrics  prometheus.Registerer
}

// NewChecker makes a checker that has checked nothing yet.
func NewChecker(config CheckerConfig) *Checker {
	return &Checker{CheckerConfig: config, metrics: newCheckMetrics(config.Metrics)}
}

// Report is what was found so far.
func (c *Checker) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

// Run checks what nobody has checked every Interval until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, c.Interval, c.runOnce, lifecycle.Warn(c.Logger, "cannot check the books"))
}

// runOnce is a round: it checks until nothing is left that nobody else is at,
// but for what is booked while it is at the last of it.
func (c *Checker) runOnce(ctx context.Context) error {
	if err := pg.InTxAsSystem(ctx, c.Pool, func(tx pgx.Tx) error { return postgres.FollowRanges(ctx, tx) }); err != nil {
		return fmt.Errorf("cannot begin to check ranges: %w", err)
	}
	for {
		if more, err := c.checkSome(ctx); !more || err != nil {
			return errors.Join(err, c.endRound(ctx))
		}
	}
}

// checkSome claims ranges and checks them, and reports whether it had to leave
// some. Whatever fails behind the claim, nobody looks at them again.
func (c *Checker) checkSome(ctx context.Context) (more bool, err error) {
	ranges, found, err := c.checkRanges(ctx)
	if err != nil || len(ranges) == 0 {
		return false, err
	}
	partitions := byPartition(ranges)
	ofBooks, err := c.checkBooks(ctx, lastsOf(partitions))
	ofLog, reread, failed := c.reread(ctx, partitions)
	c.note(len(ranges), reread, slices.Concat(found, ofBooks, ofLog))
	return hasFull(partitions), errors.Join(err, failed)
}

// hasFull reports whether a partition has as many ranges as are claimed at
// once. Where none has, the round is over: on a busy ledger, another
// claim would find what was booked meanwhile, and one after that.
func hasFull(partitions map[int][]ledger.Range) bool {
	for _, ranges := range partitions {
		if len(ranges) == rangesAtOnce {
			return true
		}
	}
	return false
}

// lastsOf are the last ranges of partitions, one of each transaction: the
// others of it would lead to the same books.
func lastsOf(partitions map[int][]ledger.Range) []ledger.Range {
	lasts := map[int64]ledger.Range{}
	for _, ranges := range partitions {
		last := ranges[len(ranges)-1]
		lasts[last.Booked.UnixMicro()] = last
	}
	return slices.Collect(maps.Values(lasts))
}

// checkRanges compares ranges with their transfers, in the
// transaction that claims them.
func (c *Checker) checkRanges(ctx context.Context) (ranges []ledger.Range, found []ledger.Violation, err error) {
	err = pg.InTxAsSystem(ctx, c.Pool, func(tx pgx.Tx) error {
		if ranges, err = postgres.ClaimRanges(ctx, tx, rangesAtOnce); err != nil {
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

// checkBooks compares books that the transactions of ranges wrote to
// with their transfers, and so the usage.
func (c *Checker) checkBooks(ctx context.Context, of []ledger.Range) (found []ledger.Violation, err error) {
	now := c.Clock()
	err = pg.Snapshot(ctx, c.Pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
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

func (c *Checker) checkBooksOf(ctx context.Context, tx pgx.Tx, r ledger.Range, now time.Time) ([]ledger.Violation, error) {
	keys, err := postgres.TouchedBy(ctx, tx, r, booksAtOnce)
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

// fewReread records are always read again: of more, a hundredth.
const fewReread = 1000

// reread compares one range of each partition with the log, whichever,
// and returns how many it has compared. After the first, it ends once it
// has read a hundredth of the records, in the random order of a map: to
// read them costs as much as to apply them.
func (c *Checker) reread(ctx context.Context, partitions map[int][]ledger.Range) (found []ledger.Violation, reread int, err error) {
	records, most := 0, max(fewReread, recordsOf(partitions)/100)
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

// recordsOf is how many records the ranges of partitions have.
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

// endRound shows how far all replicas are.
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

// Verify checks all of the database, and the log as far as it is kept, and
// returns what does not hold. It reads everything.
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
	err = pg.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		if found, err = postgres.Verify(ctx, tx, kept, now); err != nil {
			return err
		}
		ranges, err = allRanges(ctx, tx)
		return err
	})
	return found, ranges, err
}

// byPartition splits ranges by their partitions, in the order of their offsets.
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
			ranges, err := postgres.RangesOf(ctx, tx, partition, from, rangesAtOnce)
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
