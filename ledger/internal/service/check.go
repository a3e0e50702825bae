package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of one round of checks, so that checking stays a small part of the work.
const (
	rangesPerRound = 100 // of each partition
	booksPerRound  = 20
)

// A Report counts what the checks have looked at, and lists what they have found.
type Report struct {
	Rounds     int64
	Ranges     int64              // compared with their transfers
	Reread     int64              // read again from the log
	Violations []ledger.Violation // the first 100
	At         time.Time          // of the last round; zero before it
}

// A Log compares ranges of one partition, in the order of their offsets, with the log itself.
type Log interface {
	Check(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, error)
}

// A Checker compares what was just applied: each range with its transfers, the books of the latest
// range with theirs (see postgres.BookCheck), and one range a round with the log. Findings are
// logged as errors.
type Checker struct {
	CheckerConfig
	metrics *checkMetrics
	books   postgres.BookCheck

	mu      sync.Mutex
	report  Report
	checked contract.Positions // nil before the first round
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

// Run checks every Interval until ctx ends. It begins with what is applied from now on.
func (c *Checker) Run(ctx context.Context) error {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		if err := c.runOnce(ctx); err != nil && ctx.Err() == nil {
			c.Logger.Warn("cannot check the books", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (c *Checker) runOnce(ctx context.Context) error {
	ranges, found, err := c.checkDatabase(ctx)
	if err != nil {
		return err
	}
	violations, reread, err := c.reread(ctx, ranges)
	c.note(len(ranges), reread, append(found, violations...)) // whatever became of the log: these ranges are not looked at again
	return err
}

// reread compares one of the ranges with the log, and returns how many it has compared.
func (c *Checker) reread(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, int, error) {
	if len(ranges) == 0 {
		return nil, 0, nil
	}
	found, err := c.Log.Check(ctx, ranges[len(ranges)/2:][:1])
	if err != nil {
		return nil, 0, fmt.Errorf("cannot compare a range with the log: %w", err)
	}
	return found, 1, nil
}

func (c *Checker) checkDatabase(ctx context.Context) (ranges []ledger.Range, found []ledger.Violation, err error) {
	checked, now := maps.Clone(c.checked), c.Clock()
	err = pg.Snapshot(ctx, c.Pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		if checked == nil {
			checked, err = postgres.Positions(ctx, tx)
			return err
		}
		if ranges, err = postgres.RangesAfter(ctx, tx, checked, rangesPerRound); err != nil || len(ranges) == 0 {
			return err
		}
		for _, r := range ranges {
			checked[r.Partition] = max(checked[r.Partition], r.Next)
			violations, err := postgres.CheckRange(ctx, tx, r)
			if err != nil {
				return err
			}
			found = append(found, violations...)
		}
		violations, err := c.books.Of(ctx, tx, ranges[len(ranges)-1], now, booksPerRound)
		if err != nil {
			return err
		}
		usage, err := postgres.CheckUsage(ctx, tx, ranges[len(ranges)-1], booksPerRound)
		found = slices.Concat(found, violations, usage)
		return err
	})
	if err == nil {
		c.checked = checked
	}
	return ranges, found, err
}

func (c *Checker) note(ranges, reread int, found []ledger.Violation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Rounds++
	c.report.At = c.Clock()
	c.report.Ranges += int64(ranges)
	c.report.Reread += int64(reread)
	c.metrics.checked(ranges, reread, found, c.checked)
	for _, v := range found {
		c.Logger.Error("an invariant of the books does not hold", slog.String("invariant", v.Invariant), slog.String("detail", v.Detail))
		if len(c.report.Violations) < 100 {
			c.report.Violations = append(c.report.Violations, v)
		}
	}
}

// Verify checks all of the database, and the log as far as it is kept, and returns what does not
// hold. It reads everything. Usage is kept by hour since hoursSince.
func Verify(ctx context.Context, pool *pgxpool.Pool, log Log, hoursSince time.Time) ([]ledger.Violation, error) {
	found, ranges, err := verifyDatabase(ctx, pool, hoursSince)
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

func verifyDatabase(ctx context.Context, pool *pgxpool.Pool, hoursSince time.Time) (found []ledger.Violation, ranges []ledger.Range, err error) {
	err = pg.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		if found, err = postgres.Verify(ctx, tx, hoursSince); err != nil {
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
	for from := (contract.Positions{}); ; {
		ranges, err := postgres.RangesAfter(ctx, tx, from, rangesPerRound)
		if err != nil || len(ranges) == 0 {
			return all, err
		}
		for _, r := range ranges {
			from[r.Partition] = max(from[r.Partition], r.Next)
		}
		all = append(all, ranges...)
	}
}
