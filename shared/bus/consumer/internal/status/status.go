package status

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// Status is a consumer's visible state. Safe for concurrent use.
type Status struct {
	Reach *Reach // of its partitions

	group, topic string

	mu       sync.Mutex
	assigned bool // it has its partitions, or others have all
	caughtUp bool // it once reached the ends of the time of assignment
	halted   map[int]error
	stopped  map[lanes.Key]error         // lanes; bounded by Lanes.MaxPositions
	behind   map[lanes.Key]lanes.Backlog // bounded by Lanes.MaxPositions
}

// New returns the status of a consumer without partitions.
func New(group, topic string) *Status {
	return &Status{
		Reach: newReach(), group: group, topic: topic,
		halted: make(map[int]error), stopped: make(map[lanes.Key]error), behind: make(map[lanes.Key]lanes.Backlog),
	}
}

// Ready returns the error of Consumer.Ready.
func (s *Status) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, err := range s.halted {
		return fmt.Errorf("consumer %q has stopped partition %d of %q: %w", s.group, p, s.topic, err)
	}
	for at, err := range s.stopped {
		return fmt.Errorf("consumer %q has stopped a lane in partition %d of %q: %w", s.group, at.Partition, s.topic, err)
	}
	switch {
	case s.caughtUp:
		return nil
	case !s.assigned:
		return fmt.Errorf("consumer %q has no partitions of %q yet", s.group, s.topic)
	default:
		return fmt.Errorf("consumer %q has not caught up with %q yet", s.group, s.topic)
	}
}

// Claim notes an assignment and its stopped partitions.
func (s *Status) Claim(halted map[int]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned, s.halted, s.stopped = true, halted, make(map[lanes.Key]error)
}

// Idle notes that other members have all partitions.
func (s *Status) Idle() {
	s.Claim(make(map[int]error))
	s.CatchUp()
}

// Leave notes the end of an assignment.
func (s *Status) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned, s.behind = false, make(map[lanes.Key]lanes.Backlog)
	s.Reach.forget()
}

// CatchUp notes that the first ends are reached.
func (s *Status) CatchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caughtUp = true
}

// Halt notes why a partition is stopped.
func (s *Status) Halt(partition int, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted[partition] = reason
}

// IsHalted reports whether a partition is stopped.
func (s *Status) IsHalted(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted[partition] != nil
}

// Stop notes why a lane is stopped in a partition.
func (s *Status) Stop(at lanes.Key, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[at] = reason
}

// Stops counts stopped partitions and lanes.
func (s *Status) Stops() (partitions, lanes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.halted), len(s.stopped)
}

// Keep notes a lane's backlog.
func (s *Status) Keep(b lanes.Backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind[b.Key] = b
}

// Finish notes that a lane has caught up in a partition.
func (s *Status) Finish(at lanes.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.behind, at)
	delete(s.stopped, at)
}

// Lag returns what Consumer.Lag does.
func (s *Status) Lag() map[int]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	lag := s.Reach.lag()
	for at, b := range s.behind {
		lag[at.Partition] += b.Records
	}
	return lag
}

// deferral sums all lanes' deferred records.
type deferral struct {
	lanes          int
	records, bytes int64
	age            time.Duration
}

func (s *Status) deferred() (d deferral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.behind {
		d.lanes++
		d.records, d.bytes, d.age = d.records+b.Records, d.bytes+b.Bytes, max(d.age, clock.Now().Sub(b.Since))
	}
	return d
}
