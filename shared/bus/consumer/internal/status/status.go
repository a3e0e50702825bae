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
	Log   *Log   // what is known of the topic's log

	group, topic string

	mu         sync.Mutex
	joined     bool  // it once had partitions, or others had all
	leaderless []int // partitions that can't be read yet
	halted     map[int]error
	stopped    map[lanes.Key]error         // lanes; bounded by Lanes.MaxPositions
	behind     map[lanes.Key]lanes.Backlog // bounded by Lanes.MaxPositions
}

// New returns the status of a consumer without partitions.
func New(group, topic string) *Status {
	return &Status{
		Reach: newReach(), group: group, topic: topic,
		Log:    &Log{err: fmt.Errorf("the positions of consumer %q are not compared with %q yet", group, topic)},
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
	case !s.joined:
		return fmt.Errorf("consumer %q has no partitions of %q yet", s.group, s.topic)
	case len(s.leaderless) > 0:
		return fmt.Errorf("consumer %q can't read partitions %v of %q yet: they have no leader", s.group, s.leaderless, s.topic)
	}
	return nil
}

// Claim notes an assignment and its stopped partitions.
func (s *Status) Claim(halted map[int]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined, s.leaderless, s.halted, s.stopped = true, nil, halted, make(map[lanes.Key]error)
	s.Reach.claim()
}

// Lack notes a partition that can't be read before it has a leader.
func (s *Status) Lack(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaderless = append(s.leaderless, partition)
}

// Idle notes that other members have all partitions.
func (s *Status) Idle() {
	s.Claim(make(map[int]error))
	s.Reach.CatchUp()
}

// Leave notes the end of an assignment.
func (s *Status) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = make(map[lanes.Key]lanes.Backlog)
	s.Reach.forget()
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
