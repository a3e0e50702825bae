package deferred

import (
	"context"
	"fmt"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// A Reader reads deferred records from the log again. Only one
// goroutine may use it at a time.
type Reader struct {
	cluster *broker.Cluster
	topic   string
	id      wire.TopicID
	lanes   lanes.Config
	decoder *batch.Decoder

	seen    *broker.Layout // which broker leads what, until a request fails
	conn    *broker.Connection
	address string
}

// NewReader returns a reader of a topic, by its name and id.
func NewReader(cluster *broker.Cluster, topic string, id wire.TopicID, lanes lanes.Config) *Reader {
	return &Reader{cluster: cluster, topic: topic, id: id, lanes: lanes, decoder: batch.NewDecoder(topic)}
}

// Limits of a read for one turn, in bytes.
const (
	laneFetch  = 1 << 20  // of one answer, and at least one batch
	maxScanned = 64 << 20 // unpacked, of all lanes: then another lane is next
)

// Read reads a request. Another turn retries what fails.
func (l *Reader) Read(ctx context.Context, e lanes.Request) *lanes.Batch {
	s := &lanes.Batch{Request: e, Next: e.Next}
	s.Err = l.readAll(ctx, s)
	switch {
	case s.Err != nil && len(s.Records) > 0:
		s.Err = nil // the records read are applied; the error comes again
	case s.Err != nil:
		l.Close()
	}
	return s
}

// At returns the record at an offset; found is false where the log
// has none there.
func (l *Reader) At(ctx context.Context, partition int, offset int64) (record bus.Record, found bool, err error) {
	answer, err := l.fetch(ctx, partition, offset)
	if err != nil {
		l.Close()
		return record, false, err
	}
	piece, err := l.decoder.Piece(answer, partition, offset, 1)
	if len(piece.Records) > 0 && piece.Records[0].Offset == offset {
		return piece.Records[0], true, nil
	}
	return record, false, err
}

func (l *Reader) readAll(ctx context.Context, s *lanes.Batch) error {
	for scanned := 0; s.Next <= s.Last && scanned < maxScanned && !s.Taken.Fills(s.Limit); {
		s.Skip()
		answer, err := l.fetch(ctx, s.Partition, s.Next)
		if err != nil {
			return err
		}
		n, full, err := l.unpack(s, answer, maxScanned-scanned)
		if err != nil || full {
			return err
		}
		scanned += n
	}
	return nil
}

// unpack takes the lane's records from an answer, batch by batch, until
// it has enough or has unpacked most bytes.
func (l *Reader) unpack(s *lanes.Batch, set []byte, most int) (scanned int, full bool, err error) {
	from := s.Next
	for set != nil && s.Next <= s.Last && scanned < most {
		p, err := l.decoder.Piece(set, s.Partition, s.Next, 1)
		if err != nil {
			return scanned, false, err
		}
		if full = s.Choose(p, l.lanes); full {
			return scanned, true, nil
		}
		scanned, set = scanned+p.Bytes, p.Rest
	}
	if s.Next == from {
		err = fmt.Errorf("nothing at offset %d of partition %d", from, s.Partition)
	}
	return scanned, false, err
}

// fetch asks the leader of a partition for the batches at an offset.
func (l *Reader) fetch(ctx context.Context, partition int, offset int64) ([]byte, error) {
	if err := l.connect(ctx, partition); err != nil {
		return nil, err
	}
	asked := &broker.Fetch{
		Topic: l.id, MaxBytes: laneFetch, ClientID: l.cluster.Dialer.ClientID,
		Partitions: []broker.FetchPartition{{Partition: int32(partition), Offset: offset, MaxBytes: laneFetch}}, //nolint:gosec // brokers number them so
	}
	if _, err := l.conn.RoundTrip(ctx, broker.RequestTimeout, asked); err != nil {
		l.Close()
		return nil, err
	}
	for _, a := range asked.Answers {
		switch {
		case int(a.Partition) != partition:
		case a.Code == kafka.OffsetOutOfRange:
			return nil, l.outside(ctx, partition, offset)
		case a.Code != 0:
			return nil, a.Code
		default:
			return a.Records, nil
		}
	}
	return nil, fmt.Errorf("the broker's answer lacks partition %d", partition)
}

// connect connects to the leader of a partition.
func (l *Reader) connect(ctx context.Context, partition int) error {
	if l.seen == nil {
		seen, err := l.cluster.Layout(ctx, l.topic)
		if err != nil {
			return err
		}
		l.seen = &seen
	}
	address := l.seen.LeaderOf(l.topic, partition)
	switch {
	case address == "":
		return kafka.LeaderNotAvailable
	case l.conn != nil && l.address == address:
		return nil
	}
	l.hangUp()
	conn, err := broker.Connect(ctx, l.cluster.Dialer, address)
	if err == nil {
		l.conn, l.address = conn, address
	}
	return err
}

// Close drops the connection and the metadata.
func (l *Reader) Close() {
	l.seen = nil
	l.hangUp()
}

func (l *Reader) hangUp() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// outside asks the leader before it reports records as gone: the broker
// that answered may be behind.
func (l *Reader) outside(ctx context.Context, partition int, offset int64) error {
	logs, err := l.cluster.AllLogs(ctx, l.topic, []int{partition})
	log := logs.Bounds[partition]
	switch {
	case err != nil:
		return err
	case logs.ID == l.id && (offset < log.Start || offset > log.End):
		return fmt.Errorf("%w: deferred records from %d on, log from %d to %d", bus.ErrOutsideLog, offset, log.Start, log.End)
	}
	return kafka.OffsetOutOfRange
}
