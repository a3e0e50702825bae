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
	cfg    Config
	logger *slog.Logger
	ready  chan struct{}
	marks  *marks

	mu      sync.Mutex
	reading reading
}

// NewReader returns a reader that starts when Run is called.
func NewReader(cfg Config, logger *slog.Logger) *Reader {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 4<<20)
	cfg.SnapshotInterval = cmp.Or(cfg.SnapshotInterval, 5*time.Minute)
	if cfg.Clock == nil {
		cfg.Clock = clock.Now
	}
	logger = logger.With("topic", cfg.Topic)
	s := &Reader{cfg: cfg, logger: logger, ready: make(chan struct{}), marks: newMarks(cfg, logger)}
	s.reading = reading{cfg: cfg, logger: logger, parts: make(map[int]*part), marker: marker{key: cfg.Marker, logger: logger}}
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
	if settings := s.reading.settings; s.cfg.keeps(settings) {
		wg.Go(func() { s.cfg.keep(ctx, s.logger, settings.Memory()/8, s.snapshot) })
	}
	if s.marks.store != nil {
		wg.Go(func() { s.marks.keep(ctx, s.mark) })
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
	f := &follow.Follower{
		Cluster: c, Logger: s.logger, Topic: s.cfg.Topic, ID: s.reading.id, Positions: s.reading.next(), Wait: fetchWait, MaxBytes: s.cfg.MaxBytes,
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
	settings, err := c.Settings(ctx, s.cfg.Topic)
	if err != nil {
		s.logger.Warn("cannot read how the topic is compacted: no snapshot of it is used, and none is kept", "error", err)
	}
	s.mu.Lock()
	s.reading.settings = settings
	s.reading.expect(logs, begun)
	s.mu.Unlock()
	if err := s.recall(ctx); errors.Is(err, errMarksAway) {
		s.logger.Warn("the log is trusted until the database answers", "error", err)
	} else if err != nil {
		return err
	}
	snap := s.cfg.snapshot(ctx, s.logger, settings, logs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading.restore(snap)
	s.announce()
	return nil
}

// announce closes ready when nothing is missing. The caller holds the lock.
func (s *Reader) announce() {
	select {
	case <-s.ready:
		return
	default:
	}
	if s.reading.reached() {
		close(s.ready)
	}
}

// recall compares what was read before with the log, once.
func (s *Reader) recall(ctx context.Context) error {
	after, err := s.marks.compare(ctx)
	if after == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading.marker.await(after)
	return nil
}

// mark writes how far the topic was read, if the log lacks nothing.
func (s *Reader) mark(ctx context.Context) error {
	if err := s.recall(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	var read []readMark
	if s.Complete() == nil && !s.reading.sweeping() {
		read = s.reading.marks()
	}
	s.mu.Unlock()
	return s.marks.write(ctx, read)
}

// snapshot returns the state if it is complete, and how often it has
// changed so far.
func (s *Reader) snapshot() (snap snapshot, changes int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, ok = s.reading.snapshot()
	return snap, s.reading.changes, ok
}

func (s *Reader) apply(ctx context.Context, c follow.Chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reading.add(c); err != nil {
		return err
	}
	s.announce()
	s.marks.signal()
	return nil
}

// outside goes on at the start of a log that was cut or replaced.
func (s *Reader) outside(_ context.Context, partition int, position int64, log broker.LogBounds) (int64, bool) {
	s.logger.Error("state topic was cut or replaced, reading it again from its start",
		"partition", partition, "position", position, "start", log.Start, "end", log.End, "replaced", log.Replaced)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading.restart(partition, log)
	s.announce()
	return log.Start, true
}

func (s *Reader) again(ctx context.Context, c *broker.Cluster) error {
	logs, err := c.WholeTopic(ctx, s.cfg.Topic)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logger.Warn("the state was not confirmed complete for too long, reading it again from its start")
	s.reading.again(logs)
	return nil
}

// confirm notes that a partition was read to its end.
func (s *Reader) confirm(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.reading.parts[partition]; p != nil {
		p.confirmed = s.cfg.Clock()
	}
}

// Complete returns nil once Ready is closed, unless the log lost its end
// before this start, and its owner has not published that again yet.
func (s *Reader) Complete() error {
	select {
	case <-s.ready:
	default:
		return fmt.Errorf("%s is not read yet", s.cfg.Topic)
	}
	if s.reading.marker.lost.Load() != nil {
		return fmt.Errorf("%s has lost records that were read before, and waits until its owner publishes them again", s.cfg.Topic)
	}
	return nil
}

// Whole returns nil while the state is that of the whole log: it is
// ready, and no log that was cut or replaced is read again.
func (s *Reader) Whole() error {
	s.mu.Lock()
	again := s.reading.sweeping()
	s.mu.Unlock()
	if again {
		return fmt.Errorf("%s is read again", s.cfg.Topic)
	}
	return s.Complete()
}

// Lacks reports whether the log is known to have lost records, and its
// owner is not known to have published them again.
func (s *Reader) Lacks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading.lacks()
}

// Age returns how long ago the brokers last confirmed that the state is
// complete; 0 before it is ready. While they answer it is little more
// than fetchWait; earlier changes are surely in the state.
func (s *Reader) Age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading.age()
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
		for _, p := range s.reading.parts {
			keys += len(p.held)
		}
		return float64(keys)
	})
	s.reading.passedOver = promauto.With(s.cfg.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_state_passed_over_records_total", Help: "Records that could not be applied to the state and were passed over.", ConstLabels: labels,
	})
}
