package publisher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/compression"
	"github.com/weirlog/weir/shared/tracing"
)

// Compression of record batches.
type Compression string

const (
	Uncompressed Compression = "none" // cheapest if the broker is near
	Zstd         Compression = "zstd" // level 1; for slow networks and to save disk

	// ZstdSmall compresses batches whose records have at most smallRecord
	// bytes on average: those are headers for the most part, so that the
	// disk has a third less to store, at a few µs a batch.
	ZstdSmall Compression = "zstd-small"
)

const (
	smallRecord       = 1500
	compressionWindow = 64 << 10 // bytes: what repeats is near
)

// Config configures a Publisher. Only Brokers is required; zero
// means the default.
type Config struct {
	Brokers     []string      // host:port of one or more brokers; the rest are discovered
	Dialer      *kafka.Dialer // TLS, SASL, client id, dialling; default plain
	Compression Compression   // default Uncompressed

	MaxBatchBytes   int           // most bytes of one batch unless one message is larger; default 1,000,000, below the brokers' usual limit
	MaxMessageBytes int           // most bytes of one encoded message; default 2 MiB
	BufferBytes     int           // most bytes accepted and unanswered; beyond it Publish waits; default 64 MiB
	InFlight        int           // concurrent requests to one broker, each for other partitions; default 3
	RequestTimeout  time.Duration // of one attempt; default 10 s
	DeliveryTimeout time.Duration // of all attempts; then the message is reported failed or unknown; default 30 s
	CloseTimeout    time.Duration // how long Close waits for answers; default DeliveryTimeout

	Metrics prometheus.Registerer // for the instruments; nil: none
}

func (c Config) withDefaults() Config {
	c.Compression = cmp.Or(c.Compression, Uncompressed)
	c.MaxBatchBytes = cmp.Or(c.MaxBatchBytes, 1_000_000)
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 2<<20)
	c.BufferBytes = cmp.Or(c.BufferBytes, 64<<20)
	c.InFlight = cmp.Or(c.InFlight, 3)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, broker.RequestTimeout)
	c.DeliveryTimeout = cmp.Or(c.DeliveryTimeout, 30*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, c.DeliveryTimeout)
	return c
}

// Publisher writes messages with acks=all, each at most once per call
// that does not fail. Messages of one key keep their order. It is safe
// for concurrent use. It sends at once if nothing is in flight to a
// broker and else gathers messages, so there is no linger to set.
type Publisher struct {
	cfg     Config
	logger  *slog.Logger
	cluster *broker.Cluster
	codec   *compression.Packer
	budget  *budget
	metrics publisherMetrics

	workers  workers
	routes   *routes
	gate     gate
	producer producer
	turn     atomic.Uint32 // for messages without a key
}

// workers run until they are stopped.
type workers struct {
	ctx  context.Context // with which they end
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// A gate lets messages in until it is closed.
type gate struct {
	mu      sync.RWMutex
	closed  bool
	pending sync.WaitGroup // messages accepted and unanswered
}

// enter registers messages as pending unless the gate is closed.
func (g *gate) enter(n int) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.closed {
		g.pending.Add(n)
	}
	return !g.closed
}

// close reports whether the gate was closed before.
func (g *gate) close() (already bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	already, g.closed = g.closed, true
	return already
}

// New returns a publisher that is ready at once; it connects on first use.
func New(cfg Config, logger *slog.Logger) (*Publisher, error) {
	cfg = cfg.withDefaults()
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("cannot make a publisher: no brokers given")
	}
	p := &Publisher{
		cfg: cfg, logger: logger, cluster: broker.NewCluster(cfg.Brokers, cfg.Dialer), budget: &budget{limit: cfg.BufferBytes},
		metrics: newPublisherMetrics(cfg.Metrics),
	}
	var err error
	if p.codec, err = newCodec(cfg); err != nil {
		return nil, err
	}
	p.workers.ctx, p.workers.stop = context.WithCancel(context.Background())
	p.routes = newRoutes(p)
	p.workers.wg.Go(p.routes.follow)
	return p, nil
}

// Servers returns where the publisher writes to, for readers of the same.
func (p *Publisher) Servers() (brokers []string, dialer *kafka.Dialer) {
	return p.cfg.Brokers, p.cfg.Dialer
}

// newCodec returns what compresses batches; nil: nothing.
func newCodec(cfg Config) (*compression.Packer, error) {
	switch cfg.Compression {
	case Uncompressed:
		return nil, nil
	case Zstd, ZstdSmall:
		return compression.NewPacker(zstd.WithWindowSize(compressionWindow), zstd.WithEncoderCRC(false)), nil
	}
	return nil, fmt.Errorf("cannot make a publisher: unknown compression %q", cfg.Compression)
}

// codecFor returns what compresses a batch; nil: nothing.
func (p *Publisher) codecFor(b *batch.Batch) *compression.Packer {
	if p.cfg.Compression == ZstdSmall && b.Size() > b.Count*smallRecord {
		return nil
	}
	return p.codec
}

// Publish implements Watermill's message.Publisher. It returns once all
// messages are written, or with an error. Unless the error wraps
// ErrUnknownOutcome, the failed message was not written; others of the
// same call may have been.
func (p *Publisher) Publish(topic string, messages ...*message.Message) error {
	_, err := p.PublishContext(context.Background(), topic, messages...)
	return err
}

// PublishContext is Publish that waits no longer than ctx and returns
// the position of each message. A message accepted before ctx ended is
// still written if possible: the error is then ErrUnknownOutcome.
// Messages may be reused when it returns.
func (p *Publisher) PublishContext(ctx context.Context, topic string, messages ...*message.Message) ([]bus.Position, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	ctx, span := tracing.Publish(ctx, topic, len(messages))
	positions, err := p.publish(ctx, topic, messages)
	tracing.End(span, err)
	return positions, err
}

func (p *Publisher) publish(ctx context.Context, topic string, messages []*message.Message) ([]bus.Position, error) {
	partitions, err := p.routes.partitionsOf(ctx, topic)
	if err != nil {
		p.metrics.failed.Add(float64(len(messages)))
		return nil, err
	}
	tickets, err := p.accept(ctx, topic, partitions, messages)
	if err != nil {
		p.metrics.failed.Add(float64(len(messages)))
		return nil, err
	}
	return p.await(ctx, topic, tickets)
}

// ticket identifies one message in a batch.
type ticket struct {
	batch     *batch.Batch
	index     int
	partition int
}

// accept puts all messages into batches, or none.
func (p *Publisher) accept(ctx context.Context, topic string, partitions []*partition, messages []*message.Message) ([]ticket, error) {
	count := 0
	for _, m := range messages {
		count += len(m.Metadata) + 1
	}
	headers := make([]batch.Pair, count) // of all messages together
	total := 0
	records := make([]batch.Outgoing, len(messages))
	for i, m := range messages {
		room := len(m.Metadata) + 1
		records[i] = batch.NewOutgoing(m, headers[:0:room])
		headers = headers[room:]
		if size := records[i].Bound(); size > p.cfg.MaxMessageBytes {
			return nil, fmt.Errorf("cannot publish %d bytes to %q, limit %d: %w", size, topic, p.cfg.MaxMessageBytes, bus.ErrTooLarge)
		}
		total += records[i].Bound()
	}
	if err := p.budget.take(ctx, total); err != nil {
		return nil, fmt.Errorf("cannot publish to %q, no room in the buffer: %w", topic, err)
	}
	if !p.gate.enter(len(messages)) {
		p.budget.give(total)
		return nil, fmt.Errorf("cannot publish to %q: %w", topic, bus.ErrClosed)
	}
	return p.distribute(partitions, records), nil
}

func (p *Publisher) distribute(partitions []*partition, records []batch.Outgoing) []ticket {
	stamp := clock.Now().UnixMilli()
	deadline := clock.Now().Add(p.cfg.DeliveryTimeout)
	tickets := make([]ticket, len(records))
	turn := int(p.turn.Add(1) % uint32(len(partitions))) // all keyless messages of one call stay together
	for i, r := range records {
		target := turn
		if r.Keyed {
			target = partitionOf(r.Key, len(partitions))
		}
		b, index, idle := partitions[target].add(r, stamp, deadline, p.cfg.MaxBatchBytes)
		tickets[i] = ticket{b, index, target}
		if idle {
			p.routes.schedule(partitions[target])
		}
	}
	return tickets
}

func (p *Publisher) await(ctx context.Context, topic string, tickets []ticket) ([]bus.Position, error) {
	positions := make([]bus.Position, len(tickets))
	var failed error
	for i, t := range tickets {
		select {
		case <-t.batch.Done:
		case <-ctx.Done():
			return nil, unknown(topic, context.Cause(ctx))
		}
		if t.batch.Err != nil {
			failed = worse(failed, t.batch.Err)
			continue
		}
		positions[i] = bus.Position{Partition: t.partition, Offset: t.batch.OffsetOf(t.index)}
	}
	if failed != nil {
		return nil, failed
	}
	return positions, nil
}

// worse returns the less certain error: unknown before not written.
func worse(a, b error) error {
	if a != nil && (errors.Is(a, bus.ErrUnknownOutcome) || !errors.Is(b, bus.ErrUnknownOutcome)) {
		return a
	}
	return b
}

// Close refuses new messages and waits until all accepted ones are
// answered. After CloseTimeout the rest are reported as not delivered
// or as unknown. Closing twice is harmless.
func (p *Publisher) Close() error {
	if p.gate.close() {
		p.workers.wg.Wait()
		return nil
	}
	p.budget.close()
	drained := make(chan struct{})
	go func() {
		p.gate.pending.Wait()
		close(drained)
	}()
	left := p.drain(drained)
	p.workers.stop()
	p.routes.close()
	p.workers.wg.Wait()
	p.abandon()
	<-drained
	return left
}

// drain waits for the answers and fails if some are missing.
func (p *Publisher) drain(drained chan struct{}) error {
	timer := time.NewTimer(p.cfg.CloseTimeout)
	defer timer.Stop()
	select {
	case <-drained:
		return nil
	case <-timer.C:
		return fmt.Errorf("cannot deliver everything before closing within %v: the callers have their errors", p.cfg.CloseTimeout)
	}
}

// abandon settles the rest once no worker runs.
func (p *Publisher) abandon() {
	for _, part := range p.routes.all() {
		for _, b := range part.takeAll() {
			p.fail(part, b, bus.ErrClosed)
		}
	}
}

// publisherMetrics count the outcomes of messages.
type publisherMetrics struct {
	records, bytes, batches, failed, unknown prometheus.Counter
	underReplicated                          *prometheus.GaugeVec
}

func newPublisherMetrics(registerer prometheus.Registerer) publisherMetrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(registerer).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return publisherMetrics{
		records: counter("weir_bus_published_records_total", "Records that the brokers have written."),
		bytes:   counter("weir_bus_published_bytes_total", "Bytes of batches that the brokers have written, as sent."),
		batches: counter("weir_bus_published_batches_total", "Batches that the brokers have written."),
		failed:  counter("weir_bus_publish_failed_records_total", "Records that surely were not written."),
		unknown: counter("weir_bus_publish_unknown_records_total", "Records that may or may not have been written."),
		underReplicated: promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_bus_under_replicated_partitions",
			Help: "Partitions of a topic that is written to with fewer copies in sync than they have, by what the brokers said within the last minute.",
		}, []string{"topic"}),
	}
}

// observeLayout shows the brokers' answer about a topic, if there is one.
func (m publisherMetrics) observeLayout(topic string, seen broker.TopicLayout) {
	if seen.Err != nil {
		m.underReplicated.DeleteLabelValues(topic)
		return
	}
	m.underReplicated.WithLabelValues(topic).Set(float64(seen.UnderReplicated()))
}

// settled counts a batch with a final outcome.
func (m publisherMetrics) settled(records, bytes int, err error) {
	switch {
	case err == nil:
		m.records.Add(float64(records))
		m.bytes.Add(float64(bytes))
		m.batches.Inc()
	case errors.Is(err, bus.ErrUnknownOutcome):
		m.unknown.Add(float64(records))
	default:
		m.failed.Add(float64(records))
	}
}
