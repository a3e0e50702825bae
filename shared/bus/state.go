package bus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// StateConfig says what a StateReader reads. Brokers, Topic and Apply are required.
type StateConfig struct {
	Brokers []string
	Dialer  *kafka.Dialer
	Topic   string

	// Apply takes one record; a nil Value removes its key. It is called by one goroutine at a time, in order within each
	// partition, and may see a record again after the log was replaced. It may keep the record.
	Apply func(Record)

	MaxBytes int // most bytes of one answer; default 4 MiB
}

// StateReader follows a compacted topic from its beginning, so that a service holds the state of another in memory.
type StateReader struct {
	cfg    StateConfig
	logger *slog.Logger
	ready  chan struct{}

	mu      sync.Mutex
	next    map[int]int64
	missing map[int]int64 // per partition, the end of the log as first seen, until it is reached
	heard   map[int]time.Time
}

// NewStateReader returns a reader that begins when Run is called.
func NewStateReader(cfg StateConfig, logger *slog.Logger) *StateReader {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 4<<20)
	return &StateReader{cfg: cfg, logger: logger, ready: make(chan struct{}), next: make(map[int]int64), heard: make(map[int]time.Time)}
}

// Ready is closed when everything that was in the topic at the start is applied.
func (s *StateReader) Ready() <-chan struct{} { return s.ready }

// Age is how long ago the brokers last confirmed that the state is complete, 0 before it is ready. While they answer it stays
// below a second; what was changed longer ago than Age is surely in.
func (s *StateReader) Age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missing) > 0 {
		return 0
	}
	var oldest time.Duration
	for _, at := range s.heard {
		oldest = max(oldest, now().Sub(at))
	}
	return oldest
}

// hear notes that a broker has just said all there is of a partition.
func (s *StateReader) hear(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[partition] = now()
}

// Run follows the topic until ctx ends, whatever happens to the brokers, and then returns nil. It waits for a topic that does not exist.
func (s *StateReader) Run(ctx context.Context) error {
	c := newCluster(s.cfg.Brokers, s.cfg.Dialer)
	defer c.close()
	for failures := 1; ctx.Err() == nil; failures++ {
		if err := s.begin(ctx, c); err == nil {
			break
		} else if ctx.Err() == nil {
			s.logger.Warn("cannot read state yet", "topic", s.cfg.Topic, "error", err)
		}
		pause(ctx, backoff(failures, 50*time.Millisecond, 2*time.Second))
	}
	f := &follower{
		cluster: c, logger: s.logger, topic: s.cfg.Topic, positions: s.next, wait: 500 * time.Millisecond, maxBytes: s.cfg.MaxBytes,
		deliver: s.apply, outside: s.outside, heard: s.hear,
	}
	if err := f.run(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// begin finds where each partition's log starts, and where it ends now.
func (s *StateReader) begin(ctx context.Context, c *cluster) error {
	seen, err := c.layout(ctx, s.cfg.Topic)
	if err != nil {
		return err
	}
	t := seen.topics[s.cfg.Topic]
	if t.err != nil {
		return t.err
	}
	all := make([]int, len(t.leaders))
	for p := range all {
		all[p] = p
	}
	logs, err := c.bounds(ctx, s.cfg.Topic, all)
	if err != nil {
		return err
	}
	s.expect(logs)
	return nil
}

// expect sets the goal: ready once every partition has reached the end that its log has now.
func (s *StateReader) expect(logs map[int]logBounds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = make(map[int]int64)
	for p, log := range logs {
		s.next[p] = log.start
		if log.end > log.start {
			s.missing[p] = log.end
		}
	}
	s.announce()
}

// announce closes ready when nothing is missing. It is called with the lock.
func (s *StateReader) announce() {
	if len(s.missing) > 0 {
		return
	}
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

func (s *StateReader) apply(ctx context.Context, c chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range c.records {
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value) // a record that is kept must not keep the whole answer
		s.cfg.Apply(r)
	}
	if end, ok := s.missing[c.partition]; ok && c.next >= end {
		delete(s.missing, c.partition)
	}
	s.announce()
	return nil
}

// outside goes on from the start of the log: a compacted topic holds all state there. When the log was replaced by a shorter one,
// keys that only the old one had stay: a compacted topic is only ever recreated by hand, and the services restarted then.
func (s *StateReader) outside(_ context.Context, partition int, position int64, log logBounds) (int64, bool) {
	s.logger.Error("state topic was cut or replaced, reading it again from its start",
		"topic", s.cfg.Topic, "partition", partition, "position", position, "start", log.start, "end", log.end)
	return log.start, true
}
