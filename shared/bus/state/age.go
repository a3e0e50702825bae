package state

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// Complete returns nil once Ready is closed, unless the log lost its end
// before this start, and its owner has not published that again yet.
func (s *Reader) Complete() error {
	select {
	case <-s.ready:
	default:
		return fmt.Errorf("%s is not read yet", s.cfg.Topic)
	}
	if s.lost.Load() != nil {
		return fmt.Errorf("%s has lost records that were read before, and waits until its owner publishes them again", s.cfg.Topic)
	}
	return nil
}

// Whole returns nil while the state is that of the whole log: it is
// ready, and no log that was cut or replaced is read again.
func (s *Reader) Whole() error {
	s.mu.Lock()
	again := len(s.sweeps) > 0
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
	for _, sweep := range s.sweeps {
		if sweep.after != nil && !s.marker.After(*sweep.after) {
			return true
		}
	}
	return s.lost.Load() != nil
}

// Age returns how long ago the brokers last confirmed that the state is
// complete; 0 before it is ready. While they answer it is below a
// second; earlier changes are surely in the state.
func (s *Reader) Age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missing) > 0 {
		return 0
	}
	var oldest time.Duration
	for p := range s.next {
		oldest = max(oldest, s.cfg.Clock().Sub(s.asOf(p)))
	}
	return oldest
}

// asOf returns when a partition was last confirmed as read to its end:
// before its first answer, when the reader asked for that end. The
// caller holds the lock.
func (s *Reader) asOf(partition int) time.Time {
	if at, ever := s.confirmed[partition]; ever {
		return at
	}
	return s.begun
}

// confirm notes that a partition was read to its end.
func (s *Reader) confirm(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed[partition] = s.cfg.Clock()
}

// errStale means that the state was unconfirmed for so long that the
// log may have lost deletions.
var errStale = errors.New("the state was not confirmed complete for too long")

// minStaleness is the least age of a stale state, however short the
// topic's retention of tombstones.
const minStaleness = time.Minute

// stale reports whether a tombstone may have come and gone since the
// partition was last read to its end.
func (s *Reader) stale(c follow.Chunk) bool {
	at, ever := s.confirmed[c.Partition]
	if swept := s.swept[c.Partition]; swept.After(at) {
		at = swept
	}
	if !ever || s.sweeps[c.Partition] != nil || c.Next == s.next[c.Partition] || !s.settings.Compacted {
		return false
	}
	unconfirmed := s.cfg.Clock().Round(0).Sub(at.Round(0)) // by the wall clock: a machine that sleeps confirms nothing
	return unconfirmed > max(s.settings.Memory(), minStaleness)
}
