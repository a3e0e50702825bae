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

// A Replay applies published records to a ledger that is being rebuilt.
// Its consumer uses the replay's clock: entries are booked at the time
// they were accepted, as their first booking time is lost.
type Replay struct {
	Brokers  []string
	Dialer   *bus.Dialer // nil: the default
	Pool     *pgxpool.Pool
	Consumer *Consumer

	Shares    int // concurrent transactions; 0: one for each processor
	BatchSize int // most entries at one instant; 0: replayBatchSize

	Skipped int // records that can't be applied: they were parked

	now     time.Time
	logs    []*replayedLog // by their partitions
	recalls bool           // nothing is booked
}

// replayBatchSize is the default number of entries applied together.
const replayBatchSize = 50_000

// maxBatchSpan is the longest time between the acceptances of entries
// that are booked at one instant.
const maxBatchSpan = time.Minute

// Now is the replay's clock. No two transactions of an organization get
// the same time.
func (r *Replay) Now() time.Time { return r.now }

func (r *Replay) advance(at time.Time) {
	if r.now = r.now.Add(time.Microsecond); at.After(r.now) {
		r.now = at
	}
}

// ErrLost means that a log has lost records the ledger was made from.
var ErrLost = errors.New("the log has lost records")

// Open opens the log, by its topic's id, for Logs, which begins at from.
// It fails with ErrLost unless the log still has every record from there
// to through.
func (r *Replay) Open(ctx context.Context, topic [16]byte, from, through contract.Positions) error {
	reader := r.reader(contract.TopicLogs)
	id, bounds, err := reader.Bounds(ctx)
	if err != nil {
		return err
	}
	r.logs = nil
	for _, partition := range slices.Sorted(maps.Keys(through)) {
		first, next, log := from[partition], through[partition], bounds[partition]
		switch {
		case id != topic:
			return fmt.Errorf("%w: %s was created again since", ErrLost, contract.TopicLogs)
		case log.Start > first || log.End < next:
			return fmt.Errorf("%w: partition %d of %s has offsets %d to %d, and %d to %d were booked",
				ErrLost, partition, contract.TopicLogs, log.Start, log.End, first, next)
		}
		r.logs = append(r.logs, &replayedLog{reader: reader, partition: partition, start: log.Start, read: first, end: next})
	}
	return nil
}

// Recall reads the records before those that Logs begins with, back to
// since or as far as the log goes, into the inbox alone: it has to know
// copies and parts of the requests that follow.
func (r *Replay) Recall(ctx context.Context, since contract.Positions) error {
	before := contract.Positions{}
	for _, log := range r.logs {
		before[log.partition] = log.read
		log.read = max(log.start, min(log.read, since[log.partition]))
	}
	skipped := r.Skipped
	r.recalls = true
	err := r.Logs(ctx, before)
	r.recalls, r.Skipped = false, skipped
	return err
}

func (r *Replay) reader(topic string) *logrange.Reader {
	return &logrange.Reader{Brokers: r.Brokers, Dialer: r.Dialer, Topic: topic}
}

// Logs applies the unapplied entries below positions in the order of
// their acceptance. It reads ahead meanwhile.
func (r *Replay) Logs(ctx context.Context, through contract.Positions) error {
	next := make(chan replayBatch)
	err := lifecycle.Run(ctx,
		func(ctx context.Context) error {
			defer close(next)
			return r.readAhead(ctx, through, next)
		},
		func(ctx context.Context) error {
			for batch := range next {
				r.advance(batch.until)
				if err := r.book(ctx, batch.shares); err != nil {
					return fmt.Errorf("cannot apply %d records of the log: %w", batch.n, err)
				}
			}
			return nil
		})
	for _, log := range r.logs {
		r.Skipped, log.skipped = r.Skipped+log.skipped, 0
	}
	return errors.Join(err, ctx.Err())
}

// readAhead sends batches until nothing is left.
func (r *Replay) readAhead(ctx context.Context, through contract.Positions, next chan<- replayBatch) error {
	for {
		batch, err := r.nextBatch(ctx, through)
		if err != nil || batch.n == 0 {
			return err
		}
		select {
		case next <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextBatch returns the next records of all partitions, of about one time.
func (r *Replay) nextBatch(ctx context.Context, through contract.Positions) (batch replayBatch, err error) {
	batch.shares = make([]replayShare, cmp.Or(r.Shares, runtime.GOMAXPROCS(0)))
	for size := cmp.Or(r.BatchSize, replayBatchSize); batch.n < size; {
		earliest, err := r.earliest(ctx, through)
		if err != nil {
			return batch, err
		}
		if earliest == nil || !batch.fits(earliest.accepted) {
			break
		}
		batch.extend(earliest.accepted)
		batch.add(earliest.shift())
	}
	return batch, nil
}

// earliest returns the partition whose next entry was accepted first;
// nil: none has one.
func (r *Replay) earliest(ctx context.Context, through contract.Positions) (earliest *replayedLog, err error) {
	for _, log := range r.logs {
		found, err := log.fill(ctx, through[log.partition])
		if err != nil {
			return nil, err
		}
		if found && (earliest == nil || log.accepted.Before(earliest.accepted)) {
			earliest = log
		}
	}
	return earliest, nil
}

// applySkipping repeats a transaction without the record that each
// failure names: it had no effect before either. It returns how many it skipped.
func applySkipping(ctx context.Context, pool *pgxpool.Pool, drop func(bus.Position), do func(tx pgx.Tx) error) (skipped int, err error) {
	for ; ; skipped++ {
		err := postgres.InAsyncTx(ctx, pool, do)
		var permanent *bus.PermanentError
		if !errors.As(err, &permanent) || !permanent.Record {
			return skipped, err
		}
		drop(bus.Position{Partition: permanent.Partition, Offset: permanent.Offset})
	}
}
