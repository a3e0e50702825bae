package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
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

// replayReadSize is how many records of a partition are read together.
const replayReadSize = 2_500

// A replayedLog is a partition of the log that is read again, some entries ahead.
type replayedLog struct {
	reader    *logrange.Reader
	partition int
	start     int64 // offset of the first record there is
	read, end int64 // offsets: read through, and where to stop
	ahead     []entry
	accepted  time.Time // when the next entry was, or an earlier one
	skipped   int       // records that can't be applied
	lost      bool      // it has fillers: what they stand for was booked, and is gone
}

// fill reads ahead and reports whether there is a next entry below an offset.
func (l *replayedLog) fill(ctx context.Context, through int64) (found bool, err error) {
	for len(l.ahead) == 0 && l.read < min(through, l.end) {
		next := min(l.read+replayReadSize, l.end)
		if _, err := l.reader.Read(ctx, l.partition, l.read, next, l.keep); err != nil {
			return false, err
		}
		if l.lost {
			return false, fmt.Errorf("%w: partition %d has fillers before offset %d: weir resume has put them where it had lost its end", ErrLost, l.partition, next)
		}
		l.read = next
		l.updateAccepted()
	}
	return len(l.ahead) > 0 && l.ahead[0].charge.Cause.Offset < through, nil
}

func (l *replayedLog) keep(record bus.Record) {
	if record.IsFiller() {
		l.lost = true
		return
	}
	read, err := parseEntry(record)
	if err != nil {
		l.skipped++
		return
	}
	l.ahead = append(l.ahead, read)
}

func (l *replayedLog) shift() entry {
	first := l.ahead[0]
	l.ahead = l.ahead[1:]
	l.updateAccepted()
	return first
}

// updateAccepted sets when the next entry was accepted. It never goes
// back: a partition keeps its order.
func (l *replayedLog) updateAccepted() {
	if len(l.ahead) > 0 {
		l.accepted = calendar.Later(l.accepted, l.ahead[0].logs.Time)
	}
}

// A replayBatch holds the next entries of the log and when they were accepted.
type replayBatch struct {
	n           int
	shares      []replayShare
	from, until time.Time
}

// fits reports whether an entry accepted at an instant may be booked
// with the others.
func (r *replayBatch) fits(accepted time.Time) bool {
	return r.n == 0 || accepted.Sub(r.from) <= maxBatchSpan
}

// A replayShare holds a batch's entries of some organizations. Shares
// have no organization in common, so each is booked in its own
// concurrent transaction.
type replayShare struct {
	entries entries
	ranges  []ledger.Range // of these
	skipped int
}

var shareSeed = maphash.MakeSeed()

// extend adds an acceptance to the batch's span.
func (r *replayBatch) extend(accepted time.Time) {
	if r.until = accepted; r.n == 0 {
		r.from = accepted
	}
}

func (r *replayBatch) add(e entry) {
	share := &r.shares[maphash.String(shareSeed, e.logs.Organization)%uint64(len(r.shares))]
	share.entries.add(e)
	r.n++
}

// book books shares as if in one transaction: an incomplete ledger is
// dropped as a whole.
func (r *Replay) book(ctx context.Context, shares []replayShare) error {
	work := make([]func(context.Context) error, len(shares))
	for i := range shares {
		work[i] = func(ctx context.Context) error { return r.bookShare(ctx, &shares[i]) }
	}
	if err := errors.Join(lifecycle.Run(ctx, work...), ctx.Err()); err != nil {
		return err
	}
	var ranges []ledger.Range
	for _, share := range shares {
		ranges = ledger.JoinRanges(ranges, share.ranges)
		r.Skipped += share.skipped
	}
	return postgres.InAsyncTx(ctx, r.Pool, func(tx pgx.Tx) error { return r.Consumer.Services.Booking.NoteApplied(ctx, tx, ranges) })
}

func (r *Replay) bookShare(ctx context.Context, share *replayShare) (err error) {
	if len(share.entries.logs) == 0 {
		return nil
	}
	share.skipped, err = applySkipping(ctx, r.Pool, share.entries.drop, func(tx pgx.Tx) error {
		if r.recalls {
			return r.Consumer.recall(ctx, tx, share.entries)
		}
		booked, err := r.Consumer.book(ctx, tx, share.entries)
		if err != nil {
			return err
		}
		share.ranges = booked.ranges
		return SaveEvents(ctx, tx, booked.events)
	})
	return err
}

// fillers are the offsets of each partition at which the log has lost
// its records: see logend. The books account for them, as for each
// offset, and charge nothing.
type fillers map[int]stretch

// A stretch is a half-open range of offsets.
type stretch struct{ first, next int64 }

// withoutFillers returns the records that charge something, and the
// offsets of the others. Records are in the order of their partitions.
func withoutFillers(all []bus.Record) (records []bus.Record, lost fillers) {
	lost, records = fillers{}, make([]bus.Record, 0, len(all))
	for _, r := range all {
		if !r.IsFiller() {
			records = append(records, r)
			continue
		}
		s, known := lost[r.Partition]
		if !known {
			s.first = r.Offset
		}
		s.next = r.Offset + 1
		lost[r.Partition] = s
	}
	return records, lost
}

// save covers the stretches: by the ranges of the same transaction, or
// by empty ones.
func (f fillers) save(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) error {
	for i, r := range ranges {
		if s, known := f[r.Partition]; known {
			ranges[i].First, ranges[i].Next = min(r.First, s.first), max(r.Next, s.next)
			delete(f, r.Partition)
		}
	}
	for partition, s := range f {
		if err := postgres.SaveLost(ctx, tx, partition, s.next); err != nil {
			return err
		}
	}
	return nil
}
