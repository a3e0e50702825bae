package logrange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// Reader reads ranges of one topic. Brokers and Topic are required.
type Reader struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
	Topic   string
}

// Bounds are the offsets of a partition's first and next record.
type Bounds struct{ Start, End int64 }

// Bounds returns the topic's id and the bounds of every partition.
func (r *Reader) Bounds(ctx context.Context) (topic [16]byte, bounds map[int]Bounds, err error) {
	c := broker.NewCluster(r.Brokers, r.Dialer)
	logs, err := c.WholeTopic(ctx, r.Topic)
	if err != nil {
		return topic, nil, fmt.Errorf("cannot read the bounds of %s: %w", r.Topic, err)
	}
	found := make(map[int]Bounds, len(logs.Bounds))
	for p, log := range logs.Bounds {
		found[p] = Bounds{log.Start, log.End}
	}
	return logs.ID, found, nil
}

const (
	longestSilence = 30 * time.Second // before brokers return records that they have
	fetchWait      = 500 * time.Millisecond
)

// The size of answers: a short range reads nothing beyond it, a long
// one needs few answers.
const (
	shortRange = 100_000 // records
	shortFetch = 1 << 20
	longFetch  = 8 << 20
)

func fetchBytes(records int64) int {
	if records > shortRange {
		return longFetch
	}
	return shortFetch
}

var (
	errComplete = errors.New("the range is read")
	errSilent   = errors.New("the brokers hand nothing out")
)

// Read passes the records of a range of offsets to each, in order, and
// returns the first offset that the log still has. Each must not keep a
// record. It returns ErrOutsideLog if the range is beyond the log or
// was cut while it was read.
func (r *Reader) Read(ctx context.Context, partition int, from, to int64, each func(bus.Record)) (start int64, err error) {
	c := broker.NewCluster(r.Brokers, r.Dialer)
	logs, err := c.AllLogs(ctx, r.Topic, []int{partition})
	if err != nil {
		return 0, err
	}
	log := logs.Bounds[partition]
	if to > log.End {
		return 0, fmt.Errorf("%w: partition %d up to %d, log from %d to %d", bus.ErrOutsideLog, partition, to, log.Start, log.End)
	}
	start = max(from, log.Start)
	if start >= to {
		return start, nil
	}
	f := &follow.Follower{
		Cluster: c, Logger: slog.New(slog.DiscardHandler), Topic: r.Topic, ID: logs.ID, Positions: map[int]int64{partition: start},
		Wait: fetchWait, MaxBytes: fetchBytes(to - start), Lends: true,
	}
	if err := run(ctx, f, to, each); !errors.Is(err, errComplete) {
		return 0, fmt.Errorf("cannot read partition %d of %s from %d to %d: %w", partition, r.Topic, from, to, err)
	}
	return start, nil
}

// Keeps reports whether a log has a marked record as it was. One that
// retention or compaction removed, or a filler stands for, counts as kept.
func (r *Reader) Keeps(ctx context.Context, partition int, mark bus.Mark) (bool, error) {
	same := true
	_, err := r.Read(ctx, partition, mark.Offset, mark.Offset+1, func(found bus.Record) { same = found.Mark().Sum == mark.Sum || found.IsFiller() })
	return same, err
}

// How Follow reads: at once after a pause, and then in answers of many records.
const (
	followGather = 25 * time.Millisecond
	followFetch  = 4 << 20
)

// Follow passes on what comes in all partitions from now on, until ctx ends.
// It calls begun once it knows where that is, and continues at the end of a
// log that lost its place. Each must not keep a record; several goroutines
// call it, one at a time for a partition.
func (r *Reader) Follow(ctx context.Context, logger *slog.Logger, begun func(), each func(bus.Record)) error {
	c := broker.NewCluster(r.Brokers, r.Dialer)
	logs, err := c.WholeTopic(ctx, r.Topic)
	if err != nil {
		return fmt.Errorf("cannot find the end of %s: %w", r.Topic, err)
	}
	f := &follow.Follower{
		Cluster: c, Logger: logger, Topic: r.Topic, ID: logs.ID, Positions: map[int]int64{}, Wait: fetchWait, Gather: followGather,
		MaxBytes: followFetch, Lends: true,
	}
	for partition, log := range logs.Bounds {
		f.Positions[partition] = log.End
	}
	f.Deliver = func(_ context.Context, chunk follow.Chunk) error {
		for _, record := range chunk.Records {
			each(record)
		}
		return nil
	}
	f.Outside = func(_ context.Context, _ int, _ int64, log broker.LogBounds) (int64, bool) { return log.End, !log.Gone }
	begun()
	return f.Run(ctx)
}

// Since returns the offset of a partition's first record of a time or
// later, or the end of its log.
func (r *Reader) Since(ctx context.Context, partition int, at time.Time, end int64) (int64, error) {
	c := broker.NewCluster(r.Brokers, r.Dialer)
	offset, err := c.Since(ctx, r.Topic, partition, at)
	if err != nil {
		return 0, fmt.Errorf("cannot find what partition %d of %s has since %s: %w", partition, r.Topic, at.UTC().Format(time.RFC3339), err)
	}
	if offset < 0 {
		offset = end
	}
	return offset, nil
}

// run follows the log up to an offset, where it returns errComplete.
func run(ctx context.Context, f *follow.Follower, to int64, each func(bus.Record)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(longestSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	f.Deliver = func(_ context.Context, chunk follow.Chunk) error {
		silence.Reset(longestSilence)
		return pass(chunk, to, each)
	}
	f.Outside = func(_ context.Context, partition int, position int64, log broker.LogBounds) (int64, bool) {
		cancel(fmt.Errorf("%w: partition %d at %d, log from %d to %d", bus.ErrOutsideLog, partition, position, log.Start, log.End))
		return 0, false
	}
	return f.Run(ctx)
}

// pass passes on the records of a chunk before an offset.
func pass(chunk follow.Chunk, to int64, each func(bus.Record)) error {
	for _, record := range chunk.Records {
		if record.Offset < to {
			each(record)
		}
	}
	if chunk.Next >= to {
		return errComplete
	}
	return nil
}
