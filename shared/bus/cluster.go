package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

const (
	requestTimeout = 10 * time.Second
	firstOffset    = -2 // timestamps of ListOffsets that mean a place
	lastOffset     = -1
)

// cluster asks the brokers about themselves. It keeps one connection, to whichever broker answered last.
type cluster struct {
	dialer *kafka.Dialer
	seeds  []string

	mu   sync.Mutex
	conn *connection
	live []string // addresses that the last metadata named
}

// layout is who leads what, as one broker saw it at one moment.
type layout struct {
	brokers    map[int32]string // address by id
	controller int32
	topics     map[string]topicLayout
}

// topicLayout is one topic of a layout: the leader of each partition, -1 where there is none. err is why the topic is not known.
type topicLayout struct {
	leaders []int32
	err     error
}

func newCluster(brokers []string, dialer *kafka.Dialer) *cluster {
	if dialer == nil {
		dialer = &kafka.Dialer{ClientID: "weir"}
	}
	return &cluster{dialer: dialer, seeds: brokers}
}

// layout asks for the state of topics; none named means all. It asks one broker after another until one answers.
func (c *cluster) layout(ctx context.Context, topics ...string) (layout, error) {
	answer, err := c.ask(ctx, &metadata.Request{TopicNames: topics})
	if err != nil {
		return layout{}, fmt.Errorf("cannot learn about topics %q: %w", topics, err)
	}
	seen := newLayout(answer.(*metadata.Response))
	c.mu.Lock()
	c.live = c.live[:0]
	for _, address := range seen.brokers {
		c.live = append(c.live, address)
	}
	c.mu.Unlock()
	return seen, nil
}

func newLayout(m *metadata.Response) layout {
	l := layout{brokers: make(map[int32]string), controller: m.ControllerID, topics: make(map[string]topicLayout)}
	for _, b := range m.Brokers {
		l.brokers[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	for _, t := range m.Topics {
		l.topics[t.Name] = newTopicLayout(t)
	}
	return l
}

func newTopicLayout(t metadata.ResponseTopic) topicLayout {
	if t.ErrorCode != 0 {
		return topicLayout{err: kafka.Error(t.ErrorCode)}
	}
	leaders := make([]int32, len(t.Partitions))
	for _, p := range t.Partitions {
		if int(p.PartitionIndex) >= len(leaders) {
			return topicLayout{err: kafka.LeaderNotAvailable} // a gap: the broker does not know all of them yet
		}
		leaders[p.PartitionIndex] = p.LeaderID
	}
	return topicLayout{leaders: leaders}
}

// ask sends a request that any broker can answer.
func (c *cluster) ask(ctx context.Context, request protocol.Message) (protocol.Message, error) {
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

func (c *cluster) askAny(ctx context.Context, request protocol.Message) (protocol.Message, error) {
	err := errors.New("no broker given")
	for _, address := range c.addresses() {
		var conn *connection
		if conn, err = connect(ctx, c.dialer, address); err != nil {
			continue
		}
		var answer protocol.Message
		if answer, err = c.askOn(ctx, conn, request); err == nil {
			return answer, nil
		}
	}
	return nil, err
}

// addresses are all known brokers in random order, the ones seen last before the ones given at first.
func (c *cluster) addresses() []string {
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
func (c *cluster) askOn(ctx context.Context, conn *connection, request protocol.Message) (protocol.Message, error) {
	answer, err := conn.roundTrip(ctx, requestTimeout, request)
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

// close drops the kept connection. The cluster stays usable.
func (c *cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// logBounds are the offsets at which partitions' logs start and end: the end is where the next record goes.
type logBounds struct{ start, end int64 }

// bounds asks the leaders of the given partitions.
func (c *cluster) bounds(ctx context.Context, topic string, partitions []int) (map[int]logBounds, error) {
	seen, err := c.layout(ctx, topic)
	if err != nil {
		return nil, err
	}
	t := seen.topics[topic]
	if t.err != nil {
		return nil, fmt.Errorf("cannot find the log of %q: %w", topic, t.err)
	}
	byLeader := make(map[int32][]int)
	for _, p := range partitions {
		if p >= len(t.leaders) {
			return nil, fmt.Errorf("cannot find partition %d of %q: %w", p, topic, kafka.UnknownTopicOrPartition)
		}
		byLeader[t.leaders[p]] = append(byLeader[t.leaders[p]], p)
	}
	found := make(map[int]logBounds, len(partitions))
	for leader, led := range byLeader {
		if err := c.boundsAt(ctx, seen.brokers[leader], topic, led, found); err != nil {
			return nil, fmt.Errorf("cannot read the bounds of %q: %w", topic, err)
		}
	}
	return found, nil
}

func (c *cluster) boundsAt(ctx context.Context, address, topic string, partitions []int, found map[int]logBounds) error {
	if address == "" {
		return kafka.LeaderNotAvailable
	}
	conn, err := connect(ctx, c.dialer, address)
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
		found[p] = logBounds{starts[p], ends[p]}
	}
	return nil
}

func offsetsAt(ctx context.Context, conn *connection, topic string, partitions []int, place int64) (map[int]int64, error) {
	asked := listoffsets.RequestTopic{Topic: topic}
	for _, p := range partitions {
		asked.Partitions = append(asked.Partitions, listoffsets.RequestPartition{Partition: int32(p), CurrentLeaderEpoch: -1, Timestamp: place})
	}
	answer, err := conn.roundTrip(ctx, requestTimeout, &listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{asked}})
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
