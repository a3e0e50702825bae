package consumer

import (
	"time"

	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// reach is how far a partition is applied, where its log ends as far as is
// known, and when all that it has was last fetched.
type reach struct {
	next, end int64
	fetched   time.Time
}

// change changes the reach of a partition.
func (s *status) change(partition int, by func(r *reach)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reach[partition]
	by(&r)
	s.reach[partition] = r
}

// begin notes where a claimed partition goes on. Without a
// leader its log is taken to end there.
func (s *status) begin(partition int, next, end int64) {
	s.change(partition, func(r *reach) { *r = reach{next: next, end: max(next, end)} })
}

// see notes where the log ended when records of it were fetched.
func (s *status) see(partition int, end int64) {
	s.change(partition, func(r *reach) { r.end = max(r.end, end) })
}

// fetched notes that all that a partition has is fetched.
func (s *status) fetched(partition int) {
	s.change(partition, func(r *reach) { r.fetched = clock.Now() })
}

// ends notes where logs end.
func (s *status) ends(logs map[int]broker.LogBounds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, log := range logs {
		r := s.reach[p]
		r.end = log.End
		s.reach[p] = r
	}
}

// applied notes how far partitions are applied; it never goes back.
func (s *status) applied(until map[int]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, next := range until {
		r := s.reach[p]
		r.next = max(r.next, next)
		s.reach[p] = r
	}
}

// lag is what Consumer.Lag returns.
func (s *status) lag() map[int]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	lag := make(map[int]int64, len(s.reach))
	for p, r := range s.reach {
		lag[p] = max(0, r.end-r.next)
	}
	for at, b := range s.behind {
		lag[at.Partition] += b.Records
	}
	return lag
}

// lagging are the assigned partitions that are behind, or may be: all that they
// have was not fetched for so long.
func (s *status) lagging(since time.Duration) (partitions []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, r := range s.reach {
		if r.next < r.end || clock.Now().Sub(r.fetched) > since {
			partitions = append(partitions, p)
		}
	}
	return partitions
}
