package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"syscall"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
	"github.com/segmentio/kafka-go/protocol/listoffsets"

	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

const (
	RequestTimeout = 10 * time.Second
	firstOffset    = -2 // timestamps of ListOffsets that mean a place
	lastOffset     = -1
)

// Cluster asks the brokers about themselves. It keeps one
// connection, to whichever broker answered last.
type Cluster struct {
	Dialer *kafka.Dialer
	seeds  []string

	mu   sync.Mutex
	conn *Connection
	live []string // addresses that the last metadata named
}

func NewCluster(brokers []string, dialer *kafka.Dialer) *Cluster {
	if dialer == nil {
		dialer = &kafka.Dialer{ClientID: "weir"}
	}
	return &Cluster{Dialer: dialer, seeds: brokers}
}

// Layout asks one broker after another for the state of topics;
// none named means all.
func (c *Cluster) Layout(ctx context.Context, topics ...string) (Layout, error) {
	return c.layout(ctx, &metadata{topics: topics, clientID: c.Dialer.ClientID})
}

// Permitted is Layout with what the user may do with each topic.
func (c *Cluster) Permitted(ctx context.Context, topics ...string) (Layout, error) {
	return c.layout(ctx, &metadata{topics: topics, clientID: c.Dialer.ClientID, operations: true})
}

func (c *Cluster) layout(ctx context.Context, question *metadata) (Layout, error) {
	answer, err := c.Ask(ctx, question)
	if err != nil {
		return Layout{}, fmt.Errorf("cannot learn about topics %q: %w", question.topics, err)
	}
	seen := answer.(*metadata).seen
	c.mu.Lock()
	c.live = c.live[:0]
	for _, address := range seen.Brokers {
		c.live = append(c.live, address)
	}
	c.mu.Unlock()
	return seen, nil
}

// Replaced reports whether every broker that answers has another topic than the
// given id. One broker is not enough: it may be behind.
func (c *Cluster) Replaced(ctx context.Context, topic string, id wire.TopicID) (bool, error) {
	seen, err := c.Layout(ctx, topic)
	if err != nil {
		return false, err
	}
	found := seen.Topics[topic]
	if found.Err != nil || found.ID == id {
		return false, found.Err
	}
	for _, address := range seen.Brokers {
		conn, err := Connect(ctx, c.Dialer, address)
		if err != nil {
			continue
		}
		answer, err := conn.RoundTrip(ctx, RequestTimeout, &metadata{topics: []string{topic}, clientID: c.Dialer.ClientID})
		conn.Close()
		if err == nil && answer.(*metadata).seen.Topics[topic].ID == id {
			return false, nil
		}
	}
	return true, nil
}

// Ask sends a request that any broker can answer.
func (c *Cluster) Ask(ctx context.Context, request protocol.Message) (protocol.Message, error) {
	c.mu.Lock()
	conn := c.conn
	c.conn = nil
	c.mu.Unlock()
	if conn != nil {
		if answer, err := c.askOn(ctx, conn, request); err == nil {
			return answer, nil
		}
	}
	return c.askAny(ctx, request)
}

func (c *Cluster) askAny(ctx context.Context, request protocol.Message) (protocol.Message, error) {
	err := errors.New("no broker given")
	for _, address := range c.addresses() {
		var conn *Connection
		if conn, err = Connect(ctx, c.Dialer, address); err != nil {
			continue
		}
		var answer protocol.Message
		if answer, err = c.askOn(ctx, conn, request); err == nil {
			return answer, nil
		}
		if c.Dialer.SASLMechanism == nil && hungUp(err) {
			err = fmt.Errorf("broker %q hangs up (if it wants a user to sign in, name one with WEIR_BROKERS_USER): %w", address, err)
		}
	}
	return nil, err
}

// hungUp reports whether the other side closed the connection instead of an answer.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// addresses are all known brokers in random order, those seen
// last before those configured.
func (c *Cluster) addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	shuffled := func(in []string) []string {
		out := append([]string(nil), in...)
		rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	return append(shuffled(c.live), shuffled(c.seeds)...)
}

// askOn keeps the connection for the next question if it worked.
func (c *Cluster) askOn(ctx context.Context, conn *Connection, request protocol.Message) (protocol.Message, error) {
	answer, err := conn.RoundTrip(ctx, RequestTimeout, request)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
	}
	c.conn = conn
	return answer, nil
}

// Close drops the kept connection. The cluster stays usable.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// LogBounds are the offsets at which a partition's log starts and ends:
// the end is where the next record goes.
type LogBounds struct {
	Start, End int64
	Replaced   bool         // it is the log of another topic than the one that was read before, of the same name
	Topic      wire.TopicID // that one's
	Gone       bool         // which has no such partition
}

// TopicLogs are the logs of some partitions of a topic, and why some are unknown.
type TopicLogs struct {
	ID      wire.TopicID
	Bounds  map[int]LogBounds
	unknown error
}

// Logs asks the leaders of partitions. It fails only if the topic can't be
// looked up; partitions without a leader are missing in the result.
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

// AllLogs is Logs that fails if any partition is missing.
func (c *Cluster) AllLogs(ctx context.Context, topic string, partitions []int) (TopicLogs, error) {
	found, err := c.Logs(ctx, topic, partitions)
	if err == nil {
		err = found.unknown
	}
	return found, err
}

// WholeTopic is AllLogs of every partition.
func (c *Cluster) WholeTopic(ctx context.Context, topic string) (TopicLogs, error) {
	seen, err := c.Layout(ctx, topic)
	if err != nil {
		return TopicLogs{}, err
	}
	t := seen.Topics[topic]
	if t.Err == nil && len(t.Leaders) == 0 {
		t.Err = kafka.LeaderNotAvailable
	}
	if t.Err != nil { // it may be there a moment later, and without its partitions there would be nothing to wait for
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

// TopicSettings are what a topic deletes.
type TopicSettings struct {
	Compacted       bool          // by key, and by nothing else
	DeleteRetention time.Duration // how long the record that deletes a key is kept at least
}

// Memory is how old a snapshot may be to be updated from the
// log: half the retention of tombstones, to allow for clocks
// that differ and for the reading itself.
func (t TopicSettings) Memory() time.Duration { return t.DeleteRetention / 2 }

// Settings asks for a topic's settings.
func (c *Cluster) Settings(ctx context.Context, topic string) (found TopicSettings, err error) {
	described, err := c.Describe(ctx, []string{topic}, []string{"cleanup.policy", "delete.retention.ms"})
	if err != nil {
		return found, err
	}
	settings := described[topic]
	found.Compacted = settings["cleanup.policy"] == "compact"
	if text, given := settings["delete.retention.ms"]; given {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return found, fmt.Errorf("cannot read delete.retention.ms of %q: %w", topic, err)
		}
		found.DeleteRetention = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
	return found, nil
}

// Describe asks for settings of topics by their names, as the brokers write them.
func (c *Cluster) Describe(ctx context.Context, topics, names []string) (map[string]map[string]string, error) {
	const ofTopic = 2
	question := &describeconfigs.Request{}
	for _, topic := range topics {
		question.Resources = append(question.Resources, describeconfigs.RequestResource{ResourceType: ofTopic, ResourceName: topic, ConfigNames: names})
	}
	answer, err := c.Ask(ctx, question)
	if err != nil {
		return nil, fmt.Errorf("cannot read the settings of %q: %w", topics, err)
	}
	found := map[string]map[string]string{}
	for _, r := range answer.(*describeconfigs.Response).Resources {
		if r.ErrorCode != 0 {
			return nil, fmt.Errorf("cannot read the settings of %q: %w: %s", r.ResourceName, kafka.Error(r.ErrorCode), r.ErrorMessage)
		}
		found[r.ResourceName] = map[string]string{}
		for _, entry := range r.ConfigEntries {
			found[r.ResourceName][entry.ConfigName] = entry.ConfigValue
		}
	}
	return found, nil
}

// NewIdentity asks any broker for a producer id. Right after a start Apache
// Kafka answers "coordinator load in progress"; the caller asks again.
func (c *Cluster) NewIdentity(ctx context.Context) (batch.Identity, error) {
	answer, err := c.Ask(ctx, &initproducerid.Request{TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1})
	if err != nil {
		return batch.Identity{}, fmt.Errorf("cannot get a producer id: %w", err)
	}
	given := answer.(*initproducerid.Response)
	if given.ErrorCode != 0 {
		return batch.Identity{}, fmt.Errorf("cannot get a producer id: %w", kafka.Error(given.ErrorCode))
	}
	return batch.Identity{ID: given.ProducerID, Epoch: given.ProducerEpoch}, nil
}

// AwaitTopic waits until a topic exists, or ctx ends. A group member of a
// missing topic gets no partitions, and kafka-go does not look again.
func AwaitTopic(ctx context.Context, c *Cluster, topic string, logger *slog.Logger) {
	for failures := 1; ctx.Err() == nil; failures++ {
		seen, err := c.Layout(ctx, topic)
		if err == nil && len(seen.Topics[topic].Leaders) > 0 {
			return
		}
		if ctx.Err() == nil {
			logger.Warn("waiting for the topic", "error", cmp.Or(err, seen.Topics[topic].Err))
		}
		lifecycle.Pause(ctx, clock.Backoff(failures, 50*time.Millisecond, time.Second))
	}
}
