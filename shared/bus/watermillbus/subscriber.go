package watermillbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
)

// SubscriberConfig configures a Subscriber. Only Brokers is
// required; zero means the default.
type SubscriberConfig struct {
	Brokers []string
	Dialer  *kafka.Dialer // TLS, SASL, client id

	// Group shares the messages between all subscriptions of its name,
	// and commits acknowledgements to the brokers. Without it, each
	// subscription gets all messages of the topic from its beginning.
	Group string

	Partitions int           // of topics that SubscribeInitialize creates; default 1
	NackPause  time.Duration // before an unacknowledged message comes again; default 100 ms
	MaxBytes   int           // most bytes of one answer of a broker; default 4 MiB

	HeartbeatInterval time.Duration // as in consumer.Config
	SessionTimeout    time.Duration
	RebalanceTimeout  time.Duration
	JoinBackoff       time.Duration
	PartitionWatch    time.Duration
	CommitInterval    time.Duration // between reports of acknowledgements; default 500 ms; a crash repeats at most this much
}

func (c SubscriberConfig) withDefaults() SubscriberConfig {
	c.Partitions = cmp.Or(c.Partitions, 1)
	c.NackPause = cmp.Or(c.NackPause, 100*time.Millisecond)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4<<20)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 8*time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 15*time.Second)
	c.JoinBackoff = cmp.Or(c.JoinBackoff, 500*time.Millisecond)
	c.PartitionWatch = cmp.Or(c.PartitionWatch, 5*time.Second)
	c.CommitInterval = cmp.Or(c.CommitInterval, 500*time.Millisecond)
	if c.Dialer == nil {
		c.Dialer = &kafka.Dialer{ClientID: "weir", Timeout: bus.DefaultDialTimeout}
	}
	return c
}

// Subscriber passes messages to Watermill handlers, each at least once.
// A partition's next message comes once the one before is acknowledged,
// so each partition keeps its order; several partitions are handled at
// once. For effects in PostgreSQL use Consumer: it is exactly once, and
// faster by the size of its batches.
type Subscriber struct {
	cfg    SubscriberConfig
	logger *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

var (
	_ message.Subscriber           = (*Subscriber)(nil)
	_ message.SubscribeInitializer = (*Subscriber)(nil)
	_ message.Publisher            = (*publisher.Publisher)(nil)
)

// NewSubscriber returns a subscriber. Close ends all its subscriptions.
func NewSubscriber(cfg SubscriberConfig, logger *slog.Logger) (*Subscriber, error) {
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("cannot make a subscriber: no brokers given")
	}
	s := &Subscriber{cfg: cfg.withDefaults(), logger: logger}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// SubscribeInitialize creates the topic if it does not exist.
func (s *Subscriber) SubscribeInitialize(topic string) error {
	ctx, cancel := context.WithTimeout(s.ctx, 3*broker.RequestTimeout)
	defer cancel()
	return topics.EnsureWith(ctx, s.cfg.Brokers, s.cfg.Dialer, []contract.Topic{{Name: topic, Partitions: s.cfg.Partitions}})
}

// Subscribe implements message.Subscriber. The channel is closed
// when ctx ends or the subscriber is closed.
func (s *Subscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("cannot subscribe to %q: %w", topic, bus.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	sub := &subscription{
		subscriber: s, cluster: broker.NewCluster(s.cfg.Brokers, s.cfg.Dialer), topic: topic, logger: s.logger.With("topic", topic, "group", s.cfg.Group),
		out: make(chan *message.Message),
	}
	s.wg.Go(func() {
		defer cancel()
		defer stop()
		sub.run(ctx)
	})
	return sub.out, nil
}

// Close ends all subscriptions and waits until acknowledgements are reported.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	return nil
}

// Origin is where a message came from.
type Origin struct {
	Topic string
	bus.Position
	Time time.Time
}

type originKey struct{}

// OriginOf returns where a message of a Subscriber came from, or
// zero for any other.
func OriginOf(m *message.Message) Origin {
	origin, _ := m.Context().Value(originKey{}).(Origin)
	return origin
}
