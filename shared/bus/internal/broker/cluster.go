package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

const (
	RequestTimeout = 10 * time.Second
	firstOffset    = -2 // special timestamps of ListOffsets
	lastOffset     = -1
)

// Cluster asks brokers, over connections that others with the same
// dialer may have used before: see idleTime.
type Cluster struct {
	Dialer *kafka.Dialer
	seeds  []string

	mu   sync.Mutex
	live []string // addresses of the last metadata
}

// defaultDialer is one, so that connections are shared.
var defaultDialer = &kafka.Dialer{ClientID: "weir"}

func NewCluster(brokers []string, dialer *kafka.Dialer) *Cluster {
	if dialer == nil {
		dialer = defaultDialer
	}
	return &Cluster{Dialer: dialer, seeds: brokers}
}

// Layout asks broker after broker for the state of topics; none
// named means all.
func (c *Cluster) Layout(ctx context.Context, topics ...string) (Layout, error) {
	return c.layout(ctx, topics, false)
}

// Permitted is Layout with the user's rights to each topic.
func (c *Cluster) Permitted(ctx context.Context, topics ...string) (Layout, error) {
	return c.layout(ctx, topics, true)
}

func (c *Cluster) layout(ctx context.Context, topics []string, rights bool) (Layout, error) {
	answer, err := c.Ask(ctx, c.metadata(topics, rights))
	if err != nil {
		return Layout{}, fmt.Errorf("cannot learn about topics %q: %w", topics, err)
	}
	seen := layoutOf(answer)
	c.mu.Lock()
	c.live = c.live[:0]
	for _, address := range seen.Brokers {
		c.live = append(c.live, address)
	}
	c.mu.Unlock()
	return seen, nil
}

// Replaced reports whether every broker that answers has another topic
// than the given id. One broker is not enough: it may be behind.
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
		var answer protocol.Message
		err := c.On(ctx, address, func(conn *Connection) (err error) {
			answer, err = conn.RoundTrip(ctx, RequestTimeout, c.metadata([]string{topic}, false))
			return err
		})
		if err == nil && layoutOf(answer).Topics[topic].ID == id {
			return false, nil
		}
	}
	return true, nil
}

// Ask sends a request that any broker can answer, to one after the
// other until one does. It may be sent twice.
func (c *Cluster) Ask(ctx context.Context, request protocol.Message) (answer protocol.Message, err error) {
	err = errors.New("no broker given")
	for _, address := range c.addresses() {
		err = c.On(ctx, address, func(conn *Connection) error {
			answer, err = conn.RoundTrip(ctx, RequestTimeout, request)
			return err
		})
		if err == nil {
			return answer, nil
		}
		if c.Dialer.SASLMechanism == nil && hungUp(err) {
			err = fmt.Errorf("broker %q hangs up (if it wants a user to sign in, name one with WEIR_BROKERS_USER): %w", address, err)
		}
	}
	return nil, err
}

// hungUp reports whether the other side closed the connection
// without an answer.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// addresses returns all known brokers in random order, those of the
// last metadata before the configured ones.
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

// NewIdentity asks any broker for a producer id. Right after a start
// Apache Kafka answers "coordinator load in progress"; the caller retries.
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

// AwaitTopic waits until a topic exists, or ctx ends. A group member gets
// no partitions of a missing topic, and kafka-go does not look again.
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

// metadataVersion is the used version of Metadata, since Kafka 2.8.
// kafka-go's own has no topic ids.
const metadataVersion = 10

// metadata asks for topics, none for all, and for the user's rights to each.
func (c *Cluster) metadata(topics []string, rights bool) protocol.Message {
	request := kmsg.NewPtrMetadataRequest()
	request.Version, request.IncludeTopicAuthorizedOperations = metadataVersion, rights
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, topic)
	}
	return &exchange{request: request, clientID: c.Dialer.ClientID}
}

// Layout is brokers, topics and leaders as one broker saw them at one instant.
type Layout struct {
	Brokers    map[int32]string // addresses by id
	Controller int32
	Topics     map[string]TopicLayout // bounded by those asked for
}

// TopicLayout is one topic of a layout: the leader of each partition,
// -1 for none. Err is why the topic is unknown.
type TopicLayout struct {
	ID       wire.TopicID
	Leaders  []int32
	Replicas []int // for each partition, how many
	InSync   []int // of them
	Err      error

	Operations int32 // the user's rights, a bit each, if asked for
}

// UnderReplicated returns how many partitions have replicas out of sync.
func (t TopicLayout) UnderReplicated() (partitions int) {
	for i, replicas := range t.Replicas {
		if t.InSync[i] < replicas {
			partitions++
		}
	}
	return partitions
}

func layoutOf(answer protocol.Message) Layout {
	metadata := answer.(*exchange).answer.(*kmsg.MetadataResponse)
	seen := Layout{Brokers: make(map[int32]string), Controller: metadata.ControllerID, Topics: make(map[string]TopicLayout)}
	for _, b := range metadata.Brokers {
		seen.Brokers[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	for _, t := range metadata.Topics {
		if t.Topic != nil {
			seen.Topics[*t.Topic] = topicOf(t)
		}
	}
	return seen
}

// topicOf passes over the partitions' errors: their leaders return them as well.
func topicOf(t kmsg.MetadataResponseTopic) TopicLayout {
	n := len(t.Partitions)
	layout := TopicLayout{
		ID: t.TopicID, Leaders: make([]int32, n), Replicas: make([]int, n), InSync: make([]int, n), Operations: t.AuthorizedOperations,
	}
	if t.ErrorCode != 0 {
		return TopicLayout{Err: kafka.Error(t.ErrorCode)}
	}
	for _, p := range t.Partitions {
		if p.Partition < 0 || int(p.Partition) >= n {
			return TopicLayout{Err: kafka.LeaderNotAvailable} // the broker does not know all partitions yet
		}
		layout.Leaders[p.Partition], layout.Replicas[p.Partition], layout.InSync[p.Partition] = p.Leader, len(p.Replicas), len(p.ISR)
	}
	return layout
}

// LeaderOf returns the address of a partition's leader, "" for none.
func (l Layout) LeaderOf(topic string, partition int) string {
	leaders := l.Topics[topic].Leaders
	if partition >= len(leaders) {
		return ""
	}
	return l.Brokers[leaders[partition]]
}
