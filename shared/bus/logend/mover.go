package logend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"
	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"
	"github.com/segmentio/kafka-go/protocol/rawproduce"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// A Mover moves the ends of one topic's logs. Brokers and Topic are required.
type Mover struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
	Topic   string
}

// A Move is the result for one partition: To is where its log begins,
// and ended before the copied records.
type Move struct {
	To     int64
	Copied int // records that the log had, and has again from To on
}

// ErrWritten means that another process writes to the log; its offsets
// can't be moved meanwhile.
var ErrWritten = errors.New("it is being written to")

// Move makes a partition's log begin at an offset, or later if the log
// reaches further. It appends fillers, which any broker takes, then a
// copy of the log's records, and deletes all before the copy: no
// consumer ever sees a filler. The log must end at end, and nobody may
// write meanwhile. An interrupted move continues.
func (m *Mover) Move(ctx context.Context, partition int, end, to int64) (done Move, err error) {
	l, err := m.open(ctx, partition)
	if err != nil {
		return done, fmt.Errorf("cannot move partition %d of %s: %w", partition, m.Topic, err)
	}
	defer l.conn.Close()
	if err = l.endsAt(end); err == nil {
		done, err = l.carry(ctx, to)
	}
	if err != nil {
		return done, fmt.Errorf("cannot move partition %d of %s to %d: %w", partition, m.Topic, to, err)
	}
	return done, nil
}

// Fill appends fillers to a partition's log from its end, up to an
// offset: they stand for records that it has lost, so that offsets
// don't come twice. Consumers pass over them. The log must end at end,
// and nobody may write meanwhile.
func (m *Mover) Fill(ctx context.Context, partition int, end, to int64) error {
	l, err := m.open(ctx, partition)
	if err == nil {
		defer l.conn.Close()
		if err = l.endsAt(end); err == nil {
			err = l.fill(ctx, to)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot fill partition %d of %s up to %d: %w", partition, m.Topic, to, err)
	}
	return nil
}

func (l *log) endsAt(end int64) error {
	if l.had.End != end {
		return fmt.Errorf("%w: it ended at %d, now at %d", ErrWritten, end, l.had.End)
	}
	return nil
}

// carry copies the log's records to the new begin. At least one empty
// record lies between, which marks an interrupted copy.
func (l *log) carry(ctx context.Context, to int64) (done Move, err error) {
	if err := l.cut(ctx, l.had.Start); err != nil { // checks the right to delete
		return done, err
	}
	begun, err := l.begun(ctx)
	if err != nil {
		return done, err
	}
	if begun.kept > l.had.Start {
		to = max(to, begun.kept+1)
	}
	if begun.copies < l.had.End && begun.copies < to {
		return done, fmt.Errorf("%w: an interrupted move began at %d, before %d", ErrWritten, begun.copies, to)
	}
	done.To = max(to, begun.copies)
	if err := l.fill(ctx, done.To); err != nil {
		return done, err
	}
	if err := l.copy(ctx, l.had.Start+begun.copied, begun.kept); err != nil {
		return done, err
	}
	done.Copied = int(begun.kept - l.had.Start)
	return done, l.cut(ctx, done.To)
}

// cut deletes what is before an offset, unless another process has written.
func (l *log) cut(ctx context.Context, before int64) error {
	bounds, err := l.bounds(ctx)
	if err != nil {
		return err
	}
	if bounds.End != l.end {
		return fmt.Errorf("%w: it should end at %d and ends at %d", ErrWritten, l.end, bounds.End)
	}
	if err := l.conn.DeleteRecords(ctx, l.clientID, l.Topic, l.partition, before); err != nil {
		return fmt.Errorf("cannot delete records (ACL: Delete): %w", err)
	}
	return nil
}

// A log is that of one partition, with a connection to its leader.
type log struct {
	*Mover
	cluster   *broker.Cluster
	partition int
	clientID  string
	conn      *broker.Connection
	codec     *zstd.Encoder
	had       broker.LogBounds
	end       int64
}

func (m *Mover) open(ctx context.Context, partition int) (*log, error) {
	c := broker.NewCluster(m.Brokers, m.Dialer)
	defer c.Close()
	logs, err := c.AllLogs(ctx, m.Topic, []int{partition})
	if err != nil {
		return nil, err
	}
	seen, err := c.Layout(ctx, m.Topic)
	if err != nil {
		return nil, err
	}
	codec, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	conn, err := broker.Connect(ctx, c.Dialer, seen.LeaderOf(m.Topic, partition))
	if err != nil {
		return nil, err
	}
	had := logs.Bounds[partition]
	return &log{Mover: m, cluster: c, partition: partition, clientID: c.Dialer.ClientID, conn: conn, codec: codec, had: had, end: had.End}, nil
}

func (l *log) bounds(ctx context.Context) (broker.LogBounds, error) {
	defer l.cluster.Close()
	logs, err := l.cluster.AllLogs(ctx, l.Topic, []int{l.partition})
	return logs.Bounds[l.partition], err
}

// fillBatch is how many fillers a batch has: less than a
// megabyte before compression, the lowest limit of topics.
const fillBatch = 64 << 10

// fill appends fillers up to an offset. It sends the same batch
// repeatedly: the broker sets its offsets.
func (l *log) fill(ctx context.Context, to int64) error {
	full := emptyBatch(min(fillBatch, to-l.end))
	for l.end < to {
		b := full
		if left := to - l.end; left < int64(b.Count) {
			b = emptyBatch(left)
		}
		if err := l.append(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func emptyBatch(records int64) *batch.Batch {
	b := newBatch()
	for range records {
		b.Add(batch.Outgoing{}, b.MaxTime)
	}
	return b
}

func newBatch() *batch.Batch {
	b := batch.New(time.Time{}, 0)
	b.MaxTime = clock.Now().UnixMilli()
	return b
}

// append writes a batch at the known end of the log, and nowhere else.
func (l *log) append(ctx context.Context, b *batch.Batch) error {
	if !b.Sealed {
		b.Seal(batch.Identity{ID: -1, Epoch: -1}, -1, l.codec)
	}
	request := &rawproduce.Request{Acks: int16(kafka.RequireAll), Timeout: int32(broker.RequestTimeout.Milliseconds()),
		Topics: []rawproduce.RequestTopic{{Topic: l.Topic, Partitions: []rawproduce.RequestPartition{{
			Partition: int32(l.partition), RecordSet: protocol.RawRecordSet{Reader: bytes.NewReader(b.Buffer)}}}}}} //nolint:gosec // a partition
	answer, err := l.conn.RoundTrip(ctx, 2*broker.RequestTimeout, request)
	if err != nil {
		return err
	}
	at, err := placeOf(answer.(*produce.Response))
	if err != nil {
		return err
	}
	if at != l.end {
		return fmt.Errorf("%w: what was to be at %d is at %d", ErrWritten, l.end, at)
	}
	l.end += int64(b.Count)
	return nil
}

func placeOf(answer *produce.Response) (offset int64, err error) {
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return 0, errors.New("the answer to Produce is not about one partition")
	}
	p := answer.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, kafka.Error(p.ErrorCode)
	}
	return p.BaseOffset, nil
}
