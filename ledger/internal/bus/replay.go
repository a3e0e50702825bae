package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A Replay applies what was published to a ledger that is made anew, whose
// consumer has the replay's clock: what is booked again is booked when it was
// accepted, for nothing else has kept that.
type Replay struct {
	Brokers  []string
	Dialer   *bus.Dialer // nil: the default
	Pool     *pgxpool.Pool
	Consumer *Consumer

	Shares int // transactions side by side; 0: one for each processor
	AtOnce int // most entries at one instant; 0: replayedAtOnce

	Passed int // records that can't be applied: they were parked

	now  time.Time
	logs []*replayedLog // by their partitions
}

// replayedAtOnce is how much is applied before the next is.
const replayedAtOnce = 50_000

// mostBookedApart is how far apart entries were accepted that are booked at one
// instant.
const mostBookedApart = time.Minute

// Now is the replay's clock. No two transactions of an organization have the
// same time.
func (r *Replay) Now() time.Time { return r.now }

func (r *Replay) pass(at time.Time) {
	if r.now = r.now.Add(time.Microsecond); at.After(r.now) {
		r.now = at
	}
}

// ErrLost means that a log has lost what a ledger was made of.
var ErrLost = errors.New("the log has lost its beginning")

// Hold reports whether the topic of the entries, by its id, still has every
// record below positions, which later calls apply.
func (r *Replay) Hold(ctx context.Context, topic [16]byte, through contract.Positions) error {
	reader := r.reader(contract.TopicLogs)
	id, bounds, err := reader.Bounds(ctx)
	if err != nil {
		return err
	}
	r.logs = nil
	for _, partition := range slices.Sorted(maps.Keys(through)) {
		next, log := through[partition], bounds[partition]
		switch {
		case id != topic:
			return fmt.Errorf("%w: %s was made anew since", ErrLost, contract.TopicLogs)
		case log.Start > 0 || log.End < next:
			return fmt.Errorf("%w: partition %d of %s has the offsets from %d to %d, and those from 0 to %d were booked",
				ErrLost, partition, contract.TopicLogs, log.Start, log.End, next)
		}
		r.logs = append(r.logs, &replayedLog{reader: reader, partition: partition, end: next})
	}
	return nil
}

func (r *Replay) reader(topic string) *logrange.Reader {
	return &logrange.Reader{Brokers: r.Brokers, Dialer: r.Dialer, Topic: topic}
}

// Logs applies the entries below positions that are not applied yet, in the
// order in which they were accepted. The next are read meanwhile.
func (r *Replay) Logs(ctx context.Context, through contract.Positions) error {
	next := make(chan replayedEntries)
	err := lifecycle.Run(ctx,
		func(ctx context.Context) error {
			defer close(next)
			return r.readAhead(ctx, through, next)
		},
		func(ctx context.Context) error {
			for taken := range next {
				r.pass(taken.until)
				if err := r.book(ctx, taken.shares); err != nil {
					return fmt.Errorf("cannot apply %d records of the log: %w", taken.n, err)
				}
			}
			return nil
		})
	for _, log := range r.logs {
		r.Passed, log.passed = r.Passed+log.passed, 0
	}
	return errors.Join(err, ctx.Err())
}

// readAhead hands over what is to be applied at once, until nothing is left.
func (r *Replay) readAhead(ctx context.Context, through contract.Positions, next chan<- replayedEntries) error {
	for {
		taken, err := r.take(ctx, through)
		if err != nil || taken.n == 0 {
			return err
		}
		select {
		case next <- taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take are the next records of all partitions, of about one time.
func (r *Replay) take(ctx context.Context, through contract.Positions) (taken replayedEntries, err error) {
	taken.shares = make([]replayShare, cmp.Or(r.Shares, runtime.GOMAXPROCS(0)))
	for most := cmp.Or(r.AtOnce, replayedAtOnce); taken.n < most; {
		first, err := r.first(ctx, through)
		if err != nil {
			return taken, err
		}
		if first == nil || !taken.near(first.accepted) {
			break
		}
		taken.reach(first.accepted)
		taken.add(first.shift())
	}
	return taken, nil
}

// first is the partition whose next entry was accepted first; nil: none has one.
func (r *Replay) first(ctx context.Context, through contract.Positions) (first *replayedLog, err error) {
	for _, log := range r.logs {
		found, err := log.fill(ctx, through[log.partition])
		if err != nil {
			return nil, err
		}
		if found && (first == nil || log.accepted.Before(first.accepted)) {
			first = log
		}
	}
	return first, nil
}

// applied runs a transaction again and again, each time without the record that
// it blames: what can't be applied had no effect before either. It returns how
// many these are.
func applied(ctx context.Context, pool *pgxpool.Pool, drop func(bus.Position), do func(tx pgx.Tx) error) (passed int, err error) {
	for ; ; passed++ {
		err := postgres.InAsyncTx(ctx, pool, do)
		var blame *bus.PermanentError
		if !errors.As(err, &blame) || !blame.Record {
			return passed, err
		}
		drop(bus.Position{Partition: blame.Partition, Offset: blame.Offset})
	}
}
