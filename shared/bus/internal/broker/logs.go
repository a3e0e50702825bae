package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// LogBounds are the first offset of a partition's log and the offset of
// its next record.
type LogBounds struct {
	Start, End int64
	Replaced   bool         // the name now belongs to another topic, with another log
	Topic      wire.TopicID // that topic's
	Gone       bool         // it has no such partition
}

// TopicLogs are the logs of some partitions of a topic, and why
// others are unknown.
type TopicLogs struct {
	ID      wire.TopicID
	Bounds  map[int]LogBounds
	unknown error
}

// Logs asks the leaders of partitions. It fails only if the topic can't
// be looked up; the result omits partitions without a leader.
func (c *Cluster) Logs(ctx context.Context, topic string, partitions []int) (TopicLogs, error) {
	seen, err := c.Layout(ctx, topic)
	if err != nil {
		return TopicLogs{}, err
	}
	t := seen.Topics[topic]
	if t.Err != nil {
		return TopicLogs{}, fmt.Errorf("cannot find the log of %q: %w", topic, t.Err)
	}
	byLeader := make(map[string][]int)
	for _, p := range partitions {
		if p >= len(t.Leaders) {
			return TopicLogs{}, fmt.Errorf("cannot find partition %d of %q: %w", p, topic, kafka.UnknownTopicOrPartition)
		}
		byLeader[seen.LeaderOf(topic, p)] = append(byLeader[seen.LeaderOf(topic, p)], p)
	}
	found := TopicLogs{ID: t.ID, Bounds: make(map[int]LogBounds, len(partitions))}
	for address, led := range byLeader {
		if err := c.boundsAt(ctx, address, topic, led, found.Bounds); err != nil {
			found.unknown = fmt.Errorf("cannot read the bounds of %q: %w", topic, err)
		}
	}
	return found, nil
}

// AllLogs is Logs, but fails if any partition is missing.
func (c *Cluster) AllLogs(ctx context.Context, topic string, partitions []int) (TopicLogs, error) {
	found, err := c.Logs(ctx, topic, partitions)
	if err == nil {
		err = found.unknown
	}
	return found, err
}

// WholeTopic is AllLogs for every partition.
func (c *Cluster) WholeTopic(ctx context.Context, topic string) (TopicLogs, error) {
	seen, err := c.Layout(ctx, topic)
	if err != nil {
		return TopicLogs{}, err
	}
	t := seen.Topics[topic]
	if t.Err == nil && len(t.Leaders) == 0 {
		t.Err = kafka.LeaderNotAvailable
	}
	if t.Err != nil { // it may exist a moment later, and without its partitions there would be nothing to wait for
		return TopicLogs{}, t.Err
	}
	all := make([]int, len(t.Leaders))
	for p := range all {
		all[p] = p
	}
	return c.AllLogs(ctx, topic, all)
}

func (c *Cluster) boundsAt(ctx context.Context, address, topic string, partitions []int, found map[int]LogBounds) error {
	if address == "" {
		return kafka.LeaderNotAvailable
	}
	return c.On(ctx, address, func(conn *Connection) error {
		starts, err := offsetsAt(ctx, conn, topic, partitions, firstOffset)
		if err != nil {
			return err
		}
		ends, err := offsetsAt(ctx, conn, topic, partitions, lastOffset)
		if err != nil {
			return err
		}
		for _, p := range partitions {
			found[p] = LogBounds{Start: starts[p], End: ends[p]}
		}
		return nil
	})
}

// Since returns the offset of a partition's first record of a time or
// later; -1: there is none.
func (c *Cluster) Since(ctx context.Context, topic string, partition int, at time.Time) (int64, error) {
	seen, err := c.Layout(ctx, topic)
	if err != nil {
		return 0, err
	}
	address := seen.LeaderOf(topic, partition)
	if address == "" {
		return 0, kafka.LeaderNotAvailable
	}
	offset := int64(0)
	err = c.On(ctx, address, func(conn *Connection) error {
		found, err := offsetsAt(ctx, conn, topic, []int{partition}, at.UnixMilli())
		offset = found[partition]
		return err
	})
	return offset, err
}

func offsetsAt(ctx context.Context, conn *Connection, topic string, partitions []int, place int64) (map[int]int64, error) {
	asked := listoffsets.RequestTopic{Topic: topic}
	for _, p := range partitions {
		asked.Partitions = append(asked.Partitions, listoffsets.RequestPartition{Partition: int32(p), CurrentLeaderEpoch: -1, Timestamp: place})
	}
	answer, err := conn.RoundTrip(ctx, RequestTimeout, &listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{asked}})
	if err != nil {
		return nil, err
	}
	found := make(map[int]int64, len(partitions))
	for _, t := range answer.(*listoffsets.Response).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return nil, fmt.Errorf("partition %d: %w", p.Partition, kafka.Error(p.ErrorCode))
			}
			found[int(p.Partition)] = p.Offset
		}
	}
	return found, nil
}

// fetchVersion is the used version of Fetch, since Kafka 3.1. It names
// the topic by id, so that a reader never continues in another topic of
// the same name.
const fetchVersion = 13

// Fetch is a request for several partitions of one topic at one broker,
// and its answer. It does not use kafka-go's decoder, which drops a
// batch's last offset: without it the end of a compacted batch is unknown.
type Fetch struct {
	Topic      wire.TopicID
	WaitMillis int32 // at most, for MinBytes
	MinBytes   int32
	MaxBytes   int32 // of the answer; one batch always fits
	Partitions []FetchPartition

	ClientID string
	Memory   []byte // for the answer if it fits; afterwards the answer's memory
	Answers  []FetchAnswer
}

type FetchPartition struct {
	Partition int32
	Offset    int64
	MaxBytes  int32
	Fresh     bool // not answered yet
}

// FetchAnswer is a broker's answer for one partition. Records aliases
// the answer's buffer.
type FetchAnswer struct {
	Partition     int32
	Code          kafka.Error
	HighWatermark int64
	logStart      int64
	Records       []byte
}

var (
	_ protocol.Message      = (*Fetch)(nil)
	_ protocol.RawExchanger = (*Fetch)(nil)
)

func (f *Fetch) ApiKey() protocol.ApiKey { return protocol.Fetch } //nolint:staticcheck // the name that kafka-go asks for

// Required makes kafka-go call RawExchange.
func (f *Fetch) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange writes the request and reads the whole answer.
func (f *Fetch) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if _, err := rw.Write(f.encode()); err != nil {
		return nil, err
	}
	body, err := ReadAnswer(rw, f.Memory)
	if err != nil {
		return nil, err
	}
	f.Memory = body
	return f, f.decode(body)
}

func (f *Fetch) encode() []byte {
	b := wire.AppendHead(make([]byte, 0, 128+36*len(f.Partitions)), int16(protocol.Fetch), fetchVersion, f.ClientID)
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // replica: none
	b = binary.BigEndian.AppendUint32(b, uint32(f.WaitMillis))
	b = binary.BigEndian.AppendUint32(b, uint32(f.MinBytes))
	b = binary.BigEndian.AppendUint32(b, uint32(f.MaxBytes))
	b = append(b, 0)                                 // isolation: read uncommitted
	b = binary.BigEndian.AppendUint32(b, 0)          // no fetch session
	b = binary.BigEndian.AppendUint32(b, 0xffffffff) // its epoch
	b = wire.AppendCompactLength(b, 1)
	b = append(b, f.Topic[:]...)
	b = wire.AppendCompactLength(b, len(f.Partitions))
	for _, p := range f.Partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(p.Partition))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff) // leader epoch: unchecked
		b = binary.BigEndian.AppendUint64(b, uint64(p.Offset))
		b = binary.BigEndian.AppendUint32(b, 0xffffffff)         // epoch of the last record: unchecked
		b = binary.BigEndian.AppendUint64(b, 0xffffffffffffffff) // log start: for replicas
		b = binary.BigEndian.AppendUint32(b, uint32(p.MaxBytes))
		b = append(b, wire.NoTags)
	}
	b = append(b, wire.NoTags)
	b = wire.AppendCompactLength(b, 0)  // no forgotten topics
	b = wire.AppendCompactString(b, "") // rack
	return wire.Sized(append(b, wire.NoTags))
}

func (f *Fetch) decode(body []byte) error {
	r := &wire.Scanner{Rest: body}
	r.Int32() // correlation
	r.Tags()
	r.Int32() // throttle
	if code := kafka.Error(r.Int16()); code != 0 {
		return code
	}
	r.Int32() // session
	for range r.CompactItems(18) {
		r.TopicID() // the requested one
		for range r.CompactItems(37) {
			f.Answers = append(f.Answers, scanAnswer(r))
		}
		r.Tags()
	}
	if r.Bad {
		return errors.New("cannot read an answer to Fetch: it ends too early")
	}
	return nil
}

func scanAnswer(r *wire.Scanner) FetchAnswer {
	a := FetchAnswer{Partition: r.Int32(), Code: kafka.Error(r.Int16()), HighWatermark: r.Int64()}
	r.Int64() // last stable offset
	a.logStart = r.Int64()
	for range r.CompactItems(17) { // aborted transactions, null for none
		r.Int64()
		r.Int64()
		r.Tags()
	}
	r.Int32() // preferred replica
	a.Records = r.Compact()
	r.Tags()
	return a
}

// deleteVersion is the used version of DeleteRecords: brokers from
// Kafka 2.4 to 4 have it.
const deleteVersion = 2

// DeleteRecords deletes a partition's records before an offset. The
// connection is to its leader.
func (c *Connection) DeleteRecords(ctx context.Context, clientID, topic string, partition int, before int64) error {
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.Version, request.TimeoutMillis = deleteVersion, int32(RequestTimeout.Milliseconds())
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{
		Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: int32(partition), Offset: before}}, //nolint:gosec // a partition
	}}
	answer, err := c.RoundTrip(ctx, 2*RequestTimeout, &exchange{request: request, clientID: clientID})
	if err != nil {
		return err
	}
	topics := answer.(*exchange).answer.(*kmsg.DeleteRecordsResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return errors.New("cannot read an answer to DeleteRecords: it is not about one partition")
	}
	if code := kafka.Error(topics[0].Partitions[0].ErrorCode); code != 0 {
		return code
	}
	return nil
}
