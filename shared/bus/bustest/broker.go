package bustest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weirlog/weir/shared/testenv"
)

// Network dials connections that sometimes fail in a chosen way.
type Network struct {
	Fault  func(n *Network, c *BrittleConn, written []byte) error
	mu     sync.Mutex
	Random *rand.Rand
	Healed atomic.Bool
	Faults atomic.Int64
}

func (n *Network) Dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: "test", Timeout: time.Second, DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &BrittleConn{Conn: conn, network: n}, nil
	}}
}

// Strikes reports, with a chance of one in so many, that a fault is due.
func (n *Network) Strikes(in int) bool {
	if n.Healed.Load() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Random.IntN(in) != 0 {
		return false
	}
	n.Faults.Add(1)
	return true
}

// TopicName turns the name of a test into part of a topic's name.
func TopicName(text string) string { return strings.ReplaceAll(text, " ", "-") }

// BrittleConn is a connection of a network.
type BrittleConn struct {
	net.Conn
	network      *Network
	LosesAnswers atomic.Bool // answers no longer arrive
	HidesClose   atomic.Bool // nor does the end of the connection
	Slow         atomic.Bool
}

// IsProduce reports whether a write begins a Produce request.
func IsProduce(b []byte) bool {
	return len(b) >= 8 && binary.BigEndian.Uint16(b[4:]) == 0 && binary.BigEndian.Uint16(b[6:]) <= 13
}

func (c *BrittleConn) Write(b []byte) (int, error) {
	if err := c.network.Fault(c.network, c, b); err != nil {
		c.Close()
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *BrittleConn) Read(b []byte) (int, error) {
	if c.Slow.Load() && len(b) > 7 {
		time.Sleep(5 * time.Millisecond) // the fault is the pace
		b = b[:7]
	}
	n, err := c.Conn.Read(b)
	if c.LosesAnswers.Load() && err == nil {
		if c.HidesClose.Load() {
			return c.Read(b) // discard until the deadline
		}
		c.Close()
		return 0, errors.New("connection reset by the test")
	}
	return n, err
}

// ReplaceTopic deletes a topic and creates another one of its name.
func ReplaceTopic(t testing.TB, brokers []string, topic string, partitions int, config map[string]string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: testenv.Patience}
	answer, err := client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err == nil {
		err = answer.Errors[topic]
	}
	testenv.Must(t, err)
	awaitMetadata(t, brokers, topic, func(seen kafka.Topic) error {
		if !errors.Is(seen.Error, kafka.UnknownTopicOrPartition) {
			return errors.New("the topic is still there")
		}
		return nil
	})
	Ensure(t, brokers, topic, partitions, config)
}

// AddPartitions raises the number of partitions of a topic to n.
func AddPartitions(t testing.TB, brokers []string, topic string, n int32) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: testenv.Patience}
	answer, err := client.CreatePartitions(context.Background(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: n}}})
	if err == nil {
		err = answer.Errors[topic]
	}
	testenv.Must(t, err)
	// Apache Kafka answers before its metadata has them: a publisher that started now would not use them.
	awaitMetadata(t, brokers, topic, func(seen kafka.Topic) error {
		if len(seen.Partitions) < int(n) {
			return fmt.Errorf("%d partitions of %s, want %d", len(seen.Partitions), topic, n)
		}
		return nil
	})
}

func awaitMetadata(t testing.TB, brokers []string, topic string, check func(kafka.Topic) error) {
	t.Helper()
	transport := &kafka.Transport{MetadataTTL: 10 * time.Millisecond} // else it answers from its cache for six seconds
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: testenv.Patience, Transport: transport}
	testenv.Eventually(t, func() error {
		seen, err := client.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return err
		}
		return check(seen.Topics[0])
	})
}

// IDs returns the ids of a topic's records in the order of the log.
func IDs(t testing.TB, brokers []string, topic string) (found []string) {
	t.Helper()
	for _, r := range ReadAll(t, brokers, topic) {
		found = append(found, r.Header("ce_id"))
	}
	return found
}

// Quiet is a logger that drops everything.
type Quiet struct{}

func (Quiet) Logf(kfake.LogLevel, string, ...any) {}
