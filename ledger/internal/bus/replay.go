package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Replay applies what was published to a ledger that is made anew, whose
// consumer has the replay's clock: what is booked again is booked when it was
// accepted, for nothing else has kept that.
type Replay struct {
	Brokers  []string
	Dialer   *bus.Dialer // nil: the default
	Pool     *pgxpool.Pool
	Consumer *Consumer

	Passed int // records that can't be applied: they were parked

	now  time.Time
	logs map[int]*replayedLog
}

// Of a replay, how much is applied in one transaction, and read of a partition
// at once.
const (
	replayedAtOnce = 20_000
	replayedChunk  = 5_000
)

// Now is the replay's clock. No two transactions have the same time.
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
	r.logs = map[int]*replayedLog{}
	for partition, next := range through {
		log := bounds[partition]
		switch {
		case id != topic:
			return fmt.Errorf("%w: %s was made anew since", ErrLost, contract.TopicLogs)
		case log.Start > 0 || log.End < next:
			return fmt.Errorf("%w: partition %d of %s has the offsets from %d to %d, and those from 0 to %d were booked",
				ErrLost, partition, contract.TopicLogs, log.Start, log.End, next)
		}
		r.logs[partition] = &replayedLog{reader: reader, partition: partition, end: next, headers: true}
	}
	return nil
}

func (r *Replay) reader(topic string) *logrange.Reader {
	return &logrange.Reader{Brokers: r.Brokers, Dialer: r.Dialer, Topic: topic}
}

// Tenants applies what tenants has published below an offset, and returns the
// id of its topic. The ledger knows an organization from its creation on.
func (r *Replay) Tenants(ctx context.Context, through int64) (topic [16]byte, err error) {
	log := &replayedLog{reader: r.reader(contract.TopicTenants), end: through}
	if topic, _, err = log.reader.Bounds(ctx); err != nil {
		return topic, err
	}
	for {
		found, err := log.fill(ctx, through)
		if err != nil || !found {
			r.now = time.Time{} // that of the entries begins where they do
			return topic, err
		}
		record := log.shift()
		if start, err := startOf(record); err == nil && record.Header(contract.HeaderType) == contract.TypeOrganizationCreated {
			r.now = start.Plan.From
		}
		if err := r.apply(ctx, []bus.Record{record}, r.Consumer.Tenants); err != nil {
			return topic, fmt.Errorf("cannot apply what tenants has published: %w", err)
		}
	}
}

// Logs applies the entries below positions that are not applied yet, in the
// order in which they were accepted.
func (r *Replay) Logs(ctx context.Context, through contract.Positions) error {
	for {
		records, last, err := r.take(ctx, through)
		if err != nil || len(records) == 0 {
			return err
		}
		r.pass(last)
		if err := r.apply(ctx, records, r.Consumer.Logs); err != nil {
			return fmt.Errorf("cannot apply %d records of the log: %w", len(records), err)
		}
	}
}

// take are the next records of all partitions, and until when they were
// accepted.
func (r *Replay) take(ctx context.Context, through contract.Positions) (records []bus.Record, last time.Time, err error) {
	for len(records) < replayedAtOnce {
		var first *replayedLog
		for _, partition := range slices.Sorted(maps.Keys(r.logs)) {
			log := r.logs[partition]
			found, err := log.fill(ctx, through[partition])
			if err != nil {
				return nil, last, err
			}
			if found && (first == nil || log.accepted.Before(first.accepted)) {
				first = log
			}
		}
		if first == nil {
			return records, last, nil
		}
		last = first.accepted
		records = append(records, first.shift())
	}
	return records, last, nil
}

// apply applies records in one transaction, without those that can't be: what
// they do not have had no effect before either.
func (r *Replay) apply(ctx context.Context, records []bus.Record, handle func(context.Context, pgx.Tx, []bus.Record) error) error {
	for len(records) > 0 {
		err := pg.InTxAsSystem(ctx, r.Pool, func(tx pgx.Tx) error { return handle(ctx, tx, records) })
		var blame *bus.PermanentError
		if !errors.As(err, &blame) || !blame.Record {
			return err
		}
		records = slices.DeleteFunc(records, func(record bus.Record) bool {
			return record.Partition == blame.Partition && record.Offset == blame.Offset
		})
		r.Passed++
	}
	return nil
}

// A replayedLog is a partition that is read again, some records ahead.
type replayedLog struct {
	reader    *logrange.Reader
	partition int
	read, end int64 // what was read ahead, and is to be
	headers   bool  // are enough: nothing else of entries is booked
	ahead     []bus.Record
	accepted  time.Time // when the first of these was, or one before it
}

// fill reports whether a record below an offset is next, and reads it.
func (l *replayedLog) fill(ctx context.Context, through int64) (found bool, err error) {
	for len(l.ahead) == 0 && l.read < min(through, l.end) {
		next := min(l.read+replayedChunk, l.end)
		if _, err := l.reader.Read(ctx, l.partition, l.read, next, l.keep); err != nil {
			return false, err
		}
		l.read = next
		l.look()
	}
	return len(l.ahead) > 0 && l.ahead[0].Offset < through, nil
}

func (l *replayedLog) keep(record bus.Record) {
	record.Headers = slices.Clone(record.Headers)
	if l.headers {
		record.Value = nil
	}
	l.ahead = append(l.ahead, record.Detached())
}

func (l *replayedLog) shift() bus.Record {
	record := l.ahead[0]
	l.ahead = l.ahead[1:]
	l.look()
	return record
}

// look reads when the next record was accepted. What lies behind one of later
// counts as later: a partition has its order.
func (l *replayedLog) look() {
	if len(l.ahead) == 0 {
		return
	}
	if logs, err := contract.ParseLogsAccepted(l.ahead[0].Header, nil); err == nil && logs.Time.After(l.accepted) {
		l.accepted = logs.Time
	}
}
