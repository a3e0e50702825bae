package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/initproducerid"

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

// Cluster sends requests that any broker can answer. It keeps one
// connection, to the broker that answered last.
type Cluster struct {
	Dialer *kafka.Dialer
	seeds  []string

	mu   sync.Mutex
	conn *Connection
	live []string // addresses of the last metadata
}

func NewCluster(brokers []string, dialer *kafka.Dialer) *Cluster {
	if dialer == nil {
		dialer = &kafka.Dialer{ClientID: "weir"}
	}
	return &Cluster{Dialer: dialer, seeds: brokers}
}

// Layout asks broker after broker for the state of topics; none
// named means all.
func (c *Cluster) Layout(ctx context.Context, topics ...string) (Layout, error) {
	return c.layout(ctx, &metadata{topics: topics, clientID: c.Dialer.ClientID})
}

// Permitted is Layout with the user's rights to each topic.
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

// askOn sends a request and keeps a working connection for the next one.
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

// Close closes the kept connection. The cluster stays usable.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
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
