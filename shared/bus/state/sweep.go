package state

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// sweep is a second reading of a partition, to find keys that its log
// no longer has.
type sweep struct {
	from  int64 // earlier records were applied the first time
	until int64
	stale map[string]int64 // offsets of the keys not seen yet; bounded by the state

	after *time.Time // it lasts until a marker newer than this; nil: until all is read
}

// over reports whether all was read again, up to next, and what the log
// had lost was published again before the newest marker.
func (s *sweep) over(next int64, marker time.Time) bool {
	return next >= s.until && (s.after == nil || marker.After(*s.after))
}

// again makes the Reader read the whole log again, and removes what
// was deleted meanwhile.
func (s *Reader) again(ctx context.Context, c *broker.Cluster) error {
	logs, err := c.WholeTopic(ctx, s.cfg.Topic)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logger.Warn("the state was not confirmed complete for too long, reading it again from its start")
	for p, log := range logs.Bounds {
		from, after := s.next[p], (*time.Time)(nil)
		if open := s.sweeps[p]; open != nil {
			after = open.after
		}
		if logs.ID != s.id {
			from, after = log.Start, s.newer()
		}
		s.ids[p] = logs.ID
		s.sweep(p, from, log, after)
	}
	s.id = logs.ID
	return nil
}

// sweep begins a second reading of a partition. The caller holds the lock.
func (s *Reader) sweep(partition int, from int64, log broker.LogBounds, after *time.Time) {
	stale := make(map[string]int64, len(s.held[partition]))
	for key, h := range s.held[partition] {
		if stale[key] = h.offset; from == log.Start {
			stale[key] = log.Start // these offsets have other records now
		}
	}
	s.swept[partition] = s.cfg.Clock()
	s.next[partition], s.sweeps[partition] = log.Start, &sweep{from: from, until: log.End, stale: stale, after: after}
	if log.Gone || s.sweeps[partition].over(log.Start, s.marker) {
		s.finish(partition, s.sweeps[partition])
	}
}

// finish removes keys that the log no longer has. The caller holds the lock.
func (s *Reader) finish(partition int, sweep *sweep) {
	delete(s.sweeps, partition)
	if len(sweep.stale) > 0 {
		s.logger.Warn("state was deleted whose deletion was not read in time", "keys", len(sweep.stale))
	}
	for _, key := range slices.Sorted(maps.Keys(sweep.stale)) {
		s.take(bus.Record{Topic: s.cfg.Topic, Partition: partition, Offset: sweep.until, Key: []byte(key)})
	}
}

// forget drops a partition that the topic no longer has, so that
// nothing waits for it. The caller holds the lock.
func (s *Reader) forget(partition int) {
	delete(s.next, partition)
	delete(s.last, partition)
	delete(s.ids, partition)
	delete(s.confirmed, partition)
	delete(s.swept, partition)
	delete(s.held, partition)
}
