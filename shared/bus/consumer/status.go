package consumer

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// status is what a consumer shows of itself. Safe for concurrent use.
type status struct {
	group, topic string

	mu       sync.Mutex
	assigned bool // it has its partitions, or others have all
	caughtUp bool // it was once as far as they reached when they were assigned
	halted   map[int]error
	stopped  map[lanes.Key]error // lanes; bounded by Lanes.Most
	reach    map[int]reach
	behind   map[lanes.Key]lanes.Backlog // bounded by Lanes.Most
}

func newStatus(group, topic string) *status {
	return &status{
		group: group, topic: topic,
		halted: make(map[int]error), stopped: make(map[lanes.Key]error), reach: make(map[int]reach), behind: make(map[lanes.Key]lanes.Backlog),
	}
}

// ready is the error of Consumer.Ready.
func (s *status) ready() error {
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

// claim notes an assignment, some of whose partitions are stopped.
func (s *status) claim(halted map[int]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned, s.halted, s.stopped = true, halted, make(map[lanes.Key]error)
}

// idle notes that other members have all partitions.
func (s *status) idle() {
	s.claim(make(map[int]error))
	s.catchUp()
}

// leave notes the end of an assignment.
func (s *status) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned, s.reach, s.behind = false, make(map[int]reach), make(map[lanes.Key]lanes.Backlog)
}

// catchUp notes that all is applied that there was at first.
func (s *status) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caughtUp = true
}

// halt notes why a partition is stopped.
func (s *status) halt(partition int, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted[partition] = reason
}

// isHalted reports whether a partition is stopped.
func (s *status) isHalted(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted[partition] != nil
}

// stop notes why a lane is stopped in a partition.
func (s *status) stop(at lanes.Key, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[at] = reason
}

// stops counts what is stopped.
func (s *status) stops() (partitions, lanes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.halted), len(s.stopped)
}

// keep notes what a lane has deferred.
func (s *status) keep(b lanes.Backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind[b.Key] = b
}

// finish notes that a lane is back with the others in a partition.
func (s *status) finish(at lanes.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.behind, at)
	delete(s.stopped, at)
}

// deferral is what lanes have left behind in all.
type deferral struct {
	lanes          int
	records, bytes int64
	age            time.Duration
}

func (s *status) deferred() (d deferral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.behind {
		d.lanes++
		d.records, d.bytes, d.age = d.records+b.Records, d.bytes+b.Bytes, max(d.age, clock.Now().Sub(b.Since))
	}
	return d
}
