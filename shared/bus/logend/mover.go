package logend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
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
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/compression"
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
	codec     *compression.Packer
	had       broker.LogBounds
	end       int64
}

func (m *Mover) open(ctx context.Context, partition int) (*log, error) {
	c := broker.NewCluster(m.Brokers, m.Dialer)
	logs, err := c.AllLogs(ctx, m.Topic, []int{partition})
	if err != nil {
		return nil, err
	}
	seen, err := c.Layout(ctx, m.Topic)
	if err != nil {
		return nil, err
	}
	codec := compression.NewPacker(zstd.WithEncoderLevel(zstd.SpeedDefault))
	conn, err := broker.Connect(ctx, c.Dialer, seen.LeaderOf(m.Topic, partition))
	if err != nil {
		return nil, err
	}
	had := logs.Bounds[partition]
	return &log{Mover: m, cluster: c, partition: partition, clientID: c.Dialer.ClientID, conn: conn, codec: codec, had: had, end: had.End}, nil
}

func (l *log) bounds(ctx context.Context) (broker.LogBounds, error) {
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

// A begun move is what an interrupted one left: the log's old records end at
// kept, fillers follow up to copies, and copied records from there.
type begun struct {
	kept, copies, copied int64
}

// Filled reports whether the last record of a log is empty: a move was
// interrupted after it began to fill.
func (m *Mover) Filled(ctx context.Context, partition int, end int64) (filled bool, err error) {
	reader := (&log{Mover: m}).reader()
	_, err = reader.Read(ctx, partition, end-1, end, func(r bus.Record) { filled = r.IsFiller() })
	return filled, err
}

// begun looks for an interrupted move. It fails if anything but a copy
// follows the fillers.
func (l *log) begun(ctx context.Context) (begun, error) {
	b := begun{kept: l.had.End, copies: l.had.End}
	_, err := l.reader().Read(ctx, l.partition, l.had.Start, l.had.End, b.see)
	if b.copied = min(l.had.End-b.copies, b.kept-l.had.Start); err != nil || b.copies == l.had.End {
		return b, err
	}
	original, err := l.digest(ctx, l.had.Start, l.had.Start+b.copied)
	if err != nil {
		return b, err
	}
	copied, err := l.digest(ctx, b.copies, l.had.End)
	if err == nil && original != copied {
		err = fmt.Errorf("%w: from %d on it has something else than a copy of what lies before %d", ErrWritten, b.copies, b.kept)
	}
	return b, err
}

// see notes where the fillers begin and end.
func (b *begun) see(r bus.Record) {
	switch {
	case r.IsFiller():
		b.kept = min(b.kept, r.Offset)
	case b.kept < r.Offset:
		b.copies = min(b.copies, r.Offset)
	}
}

func (l *log) digest(ctx context.Context, from, to int64) (sum [sha256.Size]byte, err error) {
	d := digest{sha256.New()}
	_, err = l.reader().Read(ctx, l.partition, from, to, d.add)
	return [sha256.Size]byte(d.Sum(nil)), err
}

// A digest hashes records without their offsets.
type digest struct{ hash.Hash }

func (d digest) add(r bus.Record) {
	d.field(binary.BigEndian.AppendUint64(nil, uint64(r.Time.UnixMilli()))) //nolint:gosec // any number
	d.field(r.Key)
	d.field(r.Value)
	for _, h := range r.Headers {
		d.field([]byte(h.Key))
		d.field(h.Value)
	}
}

func (d digest) field(b []byte) {
	d.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	d.Write(b)
}

// copiedBytes is the size of a batch of copies, unless one record is larger.
const copiedBytes = 256 << 10

// copy appends a range of the log to its end. It keeps no more than a
// batch in memory.
func (l *log) copy(ctx context.Context, from, to int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &copier{log: l, ctx: ctx, cancel: cancel, batch: newBatch()}
	_, err := l.reader().Read(ctx, l.partition, from, to, c.take)
	if err == nil {
		c.flush()
	}
	if c.err != nil {
		return c.err
	}
	return err
}

func (l *log) reader() *logrange.Reader {
	return &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: l.Topic}
}

// A copier appends records while they are read.
type copier struct {
	*log
	ctx    context.Context //nolint:containedctx // of the reading that hands it records
	cancel context.CancelCauseFunc
	batch  *batch.Batch
	err    error
}

func (c *copier) take(r bus.Record) {
	if c.err != nil || r.IsFiller() {
		return
	}
	out := batch.NewOutgoing(bus.NewMessage(r), nil)
	if !c.batch.Takes(out.Bound(), copiedBytes) {
		c.flush()
	}
	c.batch.Add(out, r.Time.UnixMilli())
}

func (c *copier) flush() {
	if c.batch.Count == 0 {
		return
	}
	if c.err = c.append(c.ctx, c.batch); c.err != nil {
		c.cancel(c.err)
	}
	c.batch = newBatch()
}
