package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Config configures a Reader. Brokers, Topic and Apply are required.
type Config struct {
	Brokers []string
	Dialer  *kafka.Dialer
	Topic   string

	// Apply takes one record; a nil Value removes its key. Calls do not
	// overlap, and are in order within each partition. Apply may keep
	// records, and may see one again after the log was replaced. A key
	// that left the log unseen is removed by a record with only that
	// key. A record whose Apply fails is logged, counted and skipped:
	// an unreadable one must not stop later ones.
	Apply func(bus.Record) error

	// Marker is the key of a record that the topic's owner publishes once
	// it has published again what the log had lost. Where the log lost
	// records, nothing is removed before a newer one. Empty: there is
	// none, and the log is taken as it is.
	Marker string
	// Pool, beside a Marker, keeps how far the topic was read, in the
	// table bus_read, so that a later start notices that the log lost its
	// end since: Complete then fails until a newer marker. Without an
	// answer of the database the log is trusted, and compared later.
	Pool *pgxpool.Pool

	MaxBytes int // most bytes of one answer; default 4 MiB

	// SnapshotDir is a folder of this reader's own, created if missing,
	// in which the state is kept for a fast start; "": none. It keeps the
	// state in memory a second time, once for all readers of the process.
	// Only for topics that are compacted and delete nothing else.
	SnapshotDir      string
	SnapshotInterval time.Duration // between snapshots of a changing state; default 5 min

	Clock   func() time.Time      // the wall clock; default the system's
	Metrics prometheus.Registerer // for the instruments; nil: none
}

// Reader follows a compacted topic from its beginning, or from a
// snapshot, so that a service holds another's state in memory.
type Reader struct {
	cfg        Config
	logger     *slog.Logger
	ready      chan struct{}
	settings   broker.TopicSettings // at the start
	passedOver prometheus.Counter

	mu      sync.Mutex
	id      wire.TopicID // of the topic
	begun   time.Time    // when the brokers were asked for the logs' ends
	parts   map[int]*part
	changes int // how often what they hold has changed
	marks   *marks
}

// A part is what was read of one partition.
type part struct {
	topic     wire.TopicID // when it was read
	next      int64
	last      lastRead
	seen      bool            // last is known
	missing   int64           // the first known end of its log, until that is reached; then 0
	confirmed time.Time       // when it was last read to its end; zero: never
	swept     time.Time       // when the last sweep began
	held      map[string]held // of a compacted topic, by key; bounded by the state
	sweep     *sweep
}

func newPart() *part { return &part{last: lastRead{offset: -1}, held: make(map[string]held)} }

// of returns what was read of a partition. The caller holds the lock.
func (s *Reader) of(partition int) *part {
	p := s.parts[partition]
	if p == nil {
		p = newPart()
		s.parts[partition] = p
	}
	return p
}

// NewReader returns a reader that starts when Run is called.
func NewReader(cfg Config, logger *slog.Logger) *Reader {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 4<<20)
	cfg.SnapshotInterval = cmp.Or(cfg.SnapshotInterval, 5*time.Minute)
	if cfg.Clock == nil {
		cfg.Clock = clock.Now
	}
	logger = logger.With("topic", cfg.Topic)
	s := &Reader{cfg: cfg, logger: logger, ready: make(chan struct{}), parts: make(map[int]*part), marks: newMarks(cfg, logger)}
	s.measure()
	return s
}

// Ready is closed when all records that the topic had at the start are applied.
func (s *Reader) Ready() <-chan struct{} { return s.ready }

// Run follows the topic until ctx ends, despite failures of the
// brokers, and then returns nil. It waits for a missing topic.
func (s *Reader) Run(ctx context.Context) error {
	c := broker.NewCluster(s.cfg.Brokers, s.cfg.Dialer)
	if !s.await(ctx, c, s.begin) {
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if s.keeps() {
		wg.Go(func() { s.keep(ctx) })
	}
	if s.marks.store != nil {
		wg.Go(func() { s.keepMarks(ctx) })
	}
	for {
		err := s.follow(ctx, c)
		if errors.Is(err, errStale) && s.await(ctx, c, s.again) {
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// await retries what the brokers may not be ready for, and reports
// whether it succeeded before ctx ended.
func (s *Reader) await(ctx context.Context, c *broker.Cluster, what func(context.Context, *broker.Cluster) error) bool {
	for failures := 1; ctx.Err() == nil; failures++ {
		err := what(ctx, c)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			s.logger.Warn("cannot read state yet", "error", err)
		}
		lifecycle.Pause(ctx, clock.Backoff(failures, 50*time.Millisecond, clock.LongestAbsence))
	}
	return false
}

// fetchWait is how long a broker may delay an empty answer. Each confirms
// that the state is complete.
const fetchWait = 2 * time.Second

func (s *Reader) follow(ctx context.Context, c *broker.Cluster) error {
	s.mu.Lock()
	next := make(map[int]int64, len(s.parts))
	for n, p := range s.parts {
		next[n] = p.next
	}
	f := &follow.Follower{
		Cluster: c, Logger: s.logger, Topic: s.cfg.Topic, ID: s.id, Positions: next, Wait: fetchWait, MaxBytes: s.cfg.MaxBytes,
		Deliver: s.apply, Lends: true, Outside: s.outside, AtEnd: s.confirm,
	}
	s.mu.Unlock()
	return f.Run(ctx)
}

// begin finds the start and end of each partition's log, and loads the
// snapshot if there is one.
func (s *Reader) begin(ctx context.Context, c *broker.Cluster) error {
	begun := s.cfg.Clock()
	logs, err := c.WholeTopic(ctx, s.cfg.Topic)
	if err != nil {
		return err
	}
	if s.settings, err = c.Settings(ctx, s.cfg.Topic); err != nil {
		s.logger.Warn("cannot read how the topic is compacted: no snapshot of it is used, and none is kept", "error", err)
	}
	s.expect(logs, begun)
	if err := s.recall(ctx); errors.Is(err, errMarksAway) {
		s.logger.Warn("the log is trusted until the database answers", "error", err)
	} else if err != nil {
		return err
	}
	s.restore(ctx, logs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announce()
	return nil
}

// expect sets the goal: ready once every partition has reached its
// log's present end.
func (s *Reader) expect(logs broker.TopicLogs, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.id = begun, logs.ID
	clear(s.parts)
	for n, log := range logs.Bounds {
		p := s.of(n)
		p.next, p.topic = log.Start, logs.ID
		if log.End > log.Start {
			p.missing = log.End
		}
	}
}

// announce closes ready when nothing is missing. The caller holds the lock.
func (s *Reader) announce() {
	select {
	case <-s.ready:
		return
	default:
	}
	if s.reached() {
		close(s.ready)
	}
}

// reached reports whether nothing is missing. The caller holds the lock.
func (s *Reader) reached() bool {
	for _, p := range s.parts {
		if p.missing > 0 {
			return false
		}
	}
	return true
}

func (s *Reader) apply(ctx context.Context, c follow.Chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of(c.Partition)
	if s.stale(p, c) {
		return errStale
	}
	for _, r := range c.Records {
		s.take(p, r)
	}
	p.next = c.Next
	if n := len(c.Records); n > 0 {
		newest := c.Records[n-1]
		p.last, p.seen = lastRead{newest.Offset, newest.Mark().Sum}, true
	}
	if p.sweep != nil && p.sweep.over(c.Next, s.marks.newest) {
		s.finish(c.Partition, p)
	}
	if c.Next >= p.missing {
		p.missing = 0
	}
	s.announce()
	s.marks.signal()
	return nil
}

// take applies one record unless a sweep finds that it was applied before.
func (s *Reader) take(p *part, r bus.Record) {
	if sweep := p.sweep; sweep != nil {
		if at, stale := sweep.stale[string(r.Key)]; stale && r.Offset >= at {
			delete(sweep.stale, string(r.Key))
		}
		if r.Offset < sweep.from {
			return
		}
	}
	r = r.Detached() // the next answer reuses the memory
	if s.settings.Compacted {
		s.note(p, r)
	}
	s.applyRecord(r)
}

func (s *Reader) applyRecord(r bus.Record) {
	s.marks.see(r)
	if err := s.cfg.Apply(r); err != nil {
		s.passedOver.Inc()
		s.logger.Error("cannot apply a record of state", "partition", r.Partition, "offset", r.Offset, "error", err)
	}
}

// note keeps the newest record of a key.
func (s *Reader) note(p *part, r bus.Record) {
	s.changes++
	switch {
	case r.Key == nil:
	case r.Value == nil:
		delete(p.held, string(r.Key))
	case s.keeps():
		p.held[string(r.Key)] = pack(r)
	default:
		p.held[string(r.Key)] = held{offset: r.Offset}
	}
}

// outside continues at the start of the log, where a compacted topic
// holds all state, and has keys of the old log alone removed.
func (s *Reader) outside(_ context.Context, partition int, position int64, log broker.LogBounds) (int64, bool) {
	s.logger.Error("state topic was cut or replaced, reading it again from its start",
		"partition", partition, "position", position, "start", log.Start, "end", log.End, "replaced", log.Replaced)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.of(partition)
	if log.Replaced {
		s.id, p.topic = log.Topic, log.Topic
	}
	s.sweep(partition, p, log.Start, log, s.marks.newer())
	if p.missing > 0 {
		p.missing = log.End
	}
	if p.missing <= log.Start {
		p.missing = 0
	}
	if log.Gone { // nothing is to wait for it
		delete(s.parts, partition)
	}
	s.announce()
	return log.Start, true
}

// onceTimeout bounds Once.
const onceTimeout = 5 * time.Minute

var errRead = errors.New("it is read")

// Once reads a topic up to its present end, and passes each record on,
// in order within its partition. cfg.Apply is not used.
func Once(ctx context.Context, cfg Config, logger *slog.Logger, each func(bus.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	cfg.SnapshotDir, cfg.Pool, cfg.Metrics = "", nil, nil
	cfg.Apply = func(record bus.Record) error {
		each(record)
		return nil
	}
	reader := NewReader(cfg, logger)
	err := lifecycle.Run(ctx, reader.Run, func(ctx context.Context) error {
		select {
		case <-reader.Ready():
			return errRead
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if !errors.Is(err, errRead) {
		return fmt.Errorf("cannot read %s within %s: %w", cfg.Topic, onceTimeout, errors.Join(err, reader.Complete()))
	}
	return nil
}

// measure registers the reader's instruments.
func (s *Reader) measure() {
	labels := prometheus.Labels{"topic": s.cfg.Topic}
	gauge := func(name, help string, value func() float64) {
		promauto.With(s.cfg.Metrics).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
	}
	gauge("weir_bus_state_age_seconds", "How long ago the brokers last confirmed that the state is complete; +Inf before it is ready, "+
		"and while its log lacks what was read before.", func() float64 {
		if s.Complete() != nil {
			return math.Inf(1)
		}
		return s.Age().Seconds()
	})
	gauge("weir_bus_state_keys", "Keys that the state holds.", func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		keys := 0
		for _, p := range s.parts {
			keys += len(p.held)
		}
		return float64(keys)
	})
	s.passedOver = promauto.With(s.cfg.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_state_passed_over_records_total", Help: "Records that could not be applied to the state and were passed over.", ConstLabels: labels,
	})
}
