package broker

import (
	"context"
	"fmt"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/listoffsets"

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
	conn, err := Connect(ctx, c.Dialer, address)
	if err != nil {
		return err
	}
	defer conn.Close()
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
	conn, err := Connect(ctx, c.Dialer, address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	found, err := offsetsAt(ctx, conn, topic, []int{partition}, at.UnixMilli())
	return found[partition], err
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
