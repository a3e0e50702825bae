package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/process"
)

// The load is spread over so many organizations.
const organizations = 1000

// ceiling is the table for the comparison with COPY: the least that the
// ledger stores of a record, with its unique key.
const ceiling = `CREATE TABLE ledger.ceiling (
	organization text NOT NULL, effective_at timestamptz NOT NULL, source smallint NOT NULL, partition int NOT NULL, "offset" bigint NOT NULL,
	line smallint NOT NULL, period_start timestamptz NOT NULL, from_account smallint NOT NULL, to_account smallint NOT NULL, amount bigint NOT NULL,
	entries int NOT NULL, reason smallint NOT NULL, project text NOT NULL, key text NOT NULL, event text NOT NULL, booked_at timestamptz NOT NULL,
	PRIMARY KEY (organization, effective_at, source, partition, "offset", line))`

// perCopy is how many rows share a transaction, as many as in the ledger's.
const perCopy = 20_000

// copyAlone copies rows by two connections, as many as a replica has active
// consumers.
func (b *bench) copyAlone(ctx context.Context, w *world) error {
	for _, statement := range []string{"CREATE SCHEMA ledger", ceiling} {
		if _, err := w.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	const connections = 2
	var copying errgroup.Group
	begun, each := time.Now(), b.charged/connections
	for c := range connections {
		copying.Go(func() error {
			for first := 0; first < each; first += perCopy {
				if err := w.copyRows(ctx, c, first, min(perCopy, each-first)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := copying.Wait()
	b.copied = float64(b.charged) / time.Since(begun).Seconds()
	b.note("COPY alone, two connections", fmt.Sprintf("%.0f/s", b.copied), "")
	return err
}

// spread measures how fast one replica applies records of 1,000
// organizations, and what takes the time.
func (b *bench) spread(ctx context.Context, w *world) error {
	if err := w.accept(ctx, b.charged, organizations); err != nil {
		return err
	}
	before, err := w.statements(ctx)
	if err != nil {
		return err
	}
	stop, err := process.Profile(b.Profile)
	if err != nil {
		return err
	}
	var cpu []time.Duration
	b.rate, cpu, err = b.apply(ctx, w, ordinary)
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	after, err := w.statements(ctx)
	goal := ""
	if share := b.rate / b.copied; b.copied > 0 {
		const most, least = 0.7, 0.5
		goal = measure.Goal(share >= most, "%.2f of COPY, goal %.2f, the least %.2f", share, most, least)
		if least <= share && share < most {
			goal = fmt.Sprintf("least met: %.2f of COPY, goal %.2f, the least %.2f", share, most, least)
		}
	}
	b.note("1,000 organizations with three projects", fmt.Sprintf("%.0f/s", b.rate), goal)
	b.note("processor time of a record, PostgreSQL / this process: ledger, broker, bench",
		measure.Micros(cpu[0]/time.Duration(b.charged), cpu[1]/time.Duration(b.charged)), "")
	each := func(text string) float64 { return 1000 * (after[text] - before[text]) / float64(b.charged) } // µs
	const shown = 10
	kinds := slices.SortedFunc(maps.Keys(after), func(x, y string) int { return cmp.Compare(each(y), each(x)) })
	for _, text := range kinds[:min(shown, len(kinds))] {
		b.note("  of it in PostgreSQL: "+text, fmt.Sprintf("%.2f µs", each(text)), "")
	}
	return err
}

// A load is applied by so many replicas.
type load struct{ organizations, replicas int }

var ordinary = load{organizations, 1}

// rated measures the rate of a load, and compares it with that of the ordinary one.
func rated(what string, l load, goal string) func(*bench, context.Context, *world) error {
	return func(b *bench, ctx context.Context, w *world) error {
		rate, _, err := b.acceptAndApply(ctx, w, b.charged, l)
		verdict := ""
		if b.rate > 0 {
			verdict = measure.Goal(rate >= b.rate, "%.2f %s", rate/b.rate, goal)
		}
		b.note(what, fmt.Sprintf("%.0f/s", rate), verdict)
		return err
	}
}

func (b *bench) acceptAndApply(ctx context.Context, w *world, records int, l load) (rate float64, cpu []time.Duration, err error) {
	if err := w.accept(ctx, records, l.organizations); err != nil {
		return 0, nil, err
	}
	return b.apply(ctx, w, l)
}

// apply runs replicas until all records are committed and all account
// states published: a rest would count as work of the next measurement. It
// returns the rate between the first and the last commit seen, and the
// processor time of the whole, which hardly depends on other load.
func (b *bench) apply(ctx context.Context, w *world, l load) (rate float64, cpu []time.Duration, err error) {
	used := measure.CPU(b.processes...)
	err = w.with(ctx, l.replicas, func(ctx context.Context) error {
		first, began, err := w.await(ctx, 1)
		if err != nil {
			return err
		}
		last, ended, err := w.await(ctx, w.published)
		if err != nil {
			return err
		}
		rate = float64(last-first) / ended.Sub(began).Seconds()
		err = until(ctx, w.settled)
		cpu = used(1)
		return err
	})
	return rate, cpu, err
}

// checks applies records without checking them, then measures the effort of
// an otherwise idle ledger to check all of them, minus a start with nothing
// to check. They are about as many as are applied between two rounds at the
// full rate.
func (b *bench) checks(ctx context.Context, w *world) error {
	w.checked = time.Hour
	_, applied, err := b.acceptAndApply(ctx, w, b.rebuilt, ordinary)
	if err != nil {
		return err
	}
	w.checked = 0
	all, ranges, err := b.checkRound(ctx, w)
	if err == nil && ranges == 0 {
		err = errors.New("nothing was checked")
	}
	if err != nil {
		return err
	}
	none, _, err := b.checkRound(ctx, w)
	if applied[0] > 0 { // else PostgreSQL's part is unknown
		share := (all - none).Seconds() / (applied[0] + applied[1]).Seconds()
		b.note("checking what was applied", fmt.Sprintf("%.1f %%", 100*share), measure.Goal(share <= 0.05, "of the processor time of applying it, goal 5 %%"))
	}
	return err
}

// checkRound measures from the start of a ledger to the end of its first
// round of checks, which covers everything, and returns how many ranges it
// has checked.
func (b *bench) checkRound(ctx context.Context, w *world) (took time.Duration, ranges int64, err error) {
	used := measure.CPU(b.processes...)
	checker, err := w.replica(ctx)
	if err != nil {
		return took, 0, err
	}
	err = beside(ctx, checker.Run, func(ctx context.Context) error {
		err := until(ctx, func(ctx context.Context) (bool, error) { return checker.Report().Rounds > 0, nil })
		cpu := used(1)
		took = cpu[0] + cpu[1]
		return err
	})
	report := checker.Report()
	if len(report.Violations) > 0 {
		err = errors.Join(err, fmt.Errorf("the checks end with %+v", report))
	}
	return took, report.Ranges, err
}

// burst is the interval of publishing at half load.
const burst = 20 * time.Millisecond

// lag publishes at half of the rate, and takes the time from the broker's
// acknowledgement of a burst to the commit of its last record. Before and
// meanwhile it reads a balance repeatedly.
func (b *bench) lag(ctx context.Context, w *world) error {
	if err := w.accept(ctx, organizations, organizations); err != nil { // creates each one's book
		return err
	}
	return w.read(ctx, "/balance", func(ctx context.Context, r *reader) error {
		const readAlone = 2 * time.Second
		alone, err := r.repeat(ctx, readAlone)
		if err != nil {
			return err
		}
		var lags, balances []time.Duration
		var rate float64
		err = beside(ctx, func(ctx context.Context) (err error) {
			balances, err = r.repeat(ctx, 0)
			return err
		}, func(ctx context.Context) (err error) {
			lags, rate, err = b.pace(ctx, w)
			return err
		})
		if err != nil {
			return err
		}
		b.note(fmt.Sprintf("lag at %.0f/s, p50 / p99", rate), measure.Millis(lags...), within(lags, time.Second))
		b.note("balance meanwhile, p50 / p99", measure.Millis(balances...), within(balances, 5*time.Millisecond))
		b.note("balance before, with nothing booked beside it, p50 / p99", measure.Millis(alone...), "")
		return nil
	})
}

// pace publishes for the configured time, and follows the commits.
func (b *bench) pace(ctx context.Context, w *world) (lags []time.Duration, rate float64, err error) {
	each := max(1, int(b.rate/2*burst.Seconds()))
	type sent struct {
		records int64
		at      time.Time
	}
	bursts, followed, took := make(chan sent, 1024), make(chan error, 1), measure.Samples{}
	go func() {
		var failed error
		for s := range bursts {
			if failed == nil {
				var at time.Time
				_, at, failed = w.await(ctx, s.records)
				took.Add(at.Sub(s.at))
			}
		}
		followed <- failed
	}()
	before := w.published
	passed, err := measure.Load{Workers: 1, For: b.paced, PerSecond: 1 / burst.Seconds()}.Run(ctx, func(ctx context.Context, _ int, _ time.Time) error {
		err := w.publish(ctx, each, organizations, time.Now().UTC())
		bursts <- sent{w.published, time.Now()}
		return err
	})
	close(bursts)
	err = errors.Join(err, <-followed)
	return took.Percentiles(50, 99), float64(w.published-before) / passed.Seconds(), err
}

// usage charges a year of requests, each project's every day, and requests
// all of it.
func (b *bench) usage(ctx context.Context, w *world) error {
	now := time.Now().UTC()
	first := now.AddDate(-1, 0, 0)
	if err := w.create(ctx, 1, first.AddDate(0, 0, -1)); err != nil {
		return err
	}
	const perDay, asks = 10, 200
	for day := first; day.Before(now); day = day.AddDate(0, 0, 1) {
		if err := w.publish(ctx, perDay, 1, day); err != nil {
			return err
		}
	}
	path := fmt.Sprintf("/usage?limit=1000&from=%s&to=%s", first.Format(time.RFC3339), now.Format(time.RFC3339))
	return w.read(ctx, path, func(ctx context.Context, r *reader) error {
		var took measure.Samples
		for range asks {
			if err := took.Time(func() error { return r.ask(ctx) }); err != nil {
				return err
			}
		}
		found := took.Percentiles(50, 99)
		b.note("usage over a year, p50 / p99", measure.Millis(found...), within(found, 100*time.Millisecond))
		return nil
	})
}

// rebuild measures how long ledger-rebuild takes to rebuild a ledger from
// all records, seal its hours, and compare it with the other.
func (b *bench) rebuild(ctx context.Context, w *world) error {
	if _, _, err := b.acceptAndApply(ctx, w, b.rebuilt, ordinary); err != nil {
		return err
	}
	begun := time.Now()
	made, err := ledger.Rebuild(ctx, w.ledger(), b.logger)
	if err == nil && len(made.Differences) > 0 {
		err = fmt.Errorf("the rebuilt ledger differs: %v", made.Differences)
	}
	took, most := time.Since(begun), time.Duration(b.rebuilt)*10*time.Microsecond
	b.note(fmt.Sprintf("rebuild of %d records", b.rebuilt), took.Round(10*time.Millisecond).String(), measure.Goal(took <= most, "within %s", most))
	return err
}

// copyRows copies rows of a partition from an offset on.
func (w *world) copyRows(ctx context.Context, partition, first, n int) error {
	columns := []string{"organization", "effective_at", "source", "partition", "offset", "line", "period_start", "from_account", "to_account", "amount",
		"entries", "reason", "project", "key", "event", "booked_at"}
	now := time.Now()
	row := func(i int) ([]any, error) {
		offset := first + i
		id := organization(offset % organizations)
		return []any{id, now, int16(0), int32(partition), int64(offset), int16(0), now, int16(1), int16(2), int64(20_000), //nolint:gosec // small
			int32(100), int16(2), "prj_" + id, "key_" + id, fmt.Sprintf("0193d4c1-7c2a-7000-8000-%012d/1", offset), now}, nil
	}
	_, err := w.pool.CopyFrom(ctx, pgx.Identifier{"ledger", "ceiling"}, columns, pgx.CopyFromSlice(n, row))
	return err
}
