package fairshare

import (
	"context"
	"sync/atomic"
	"time"
)

// A Lease is what one holder's work holds. It belongs to one goroutine, but
// for Evicted.
type Lease struct {
	limiter *Limiter
	of      *holder
	index   int   // among the key's leases; -1: released
	number  int64 // of all that were opened
	units   int64
	began   time.Time

	useful  atomic.Int64
	evicted atomic.Bool
	chosen  bool   // it is to be evicted
	stop    func() // makes the work end; nil: it can't be evicted
	claim   *claim // nil: it waits for nothing
}

// Release returns everything. It may be called again.
func (s *Lease) Release() {
	l, of := s.limiter, s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.index < 0 {
		return
	}
	s.allow(nil)
	l.leases--
	l.add(s, -s.units)
	last := len(of.leases) - 1
	of.leases[s.index], of.leases[last].index = of.leases[last], s.index
	of.leases[last], s.index = nil, -1
	if of.leases = of.leases[:last]; last == 0 {
		delete(l.holders, of.key)
	}
	l.serve()
}

// Grow lends more units, once they are free.
func (s *Lease) Grow(ctx context.Context, units int64) error {
	s.limiter.mu.Lock()
	return s.limiter.take(ctx, s, units)
}

// Extend lends up to so many more units, as far as they are free by Share
// now, and returns how many the lease has.
func (s *Lease) Extend(units int64) int64 {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(s, max(0, min(units, l.limits.Capacity-l.held, l.room(s.of))))
	return s.units
}

// Shrink returns the units above a size.
func (s *Lease) Shrink(units int64) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.units > units {
		l.add(s, units-s.units)
		l.serve()
	}
}

// AllowEviction lets the lease be evicted: then stop is called once, which
// must make its work end, and neither wait nor call the limiter.
func (s *Lease) AllowEviction(stop func()) {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.allow(stop)
	s.limiter.serve() // who waits may have found nothing to evict
}

// Pin keeps the lease from eviction from now on. It returns ErrEvicted if
// that is too late.
func (s *Lease) Pin() error {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.allow(nil)
	if s.Evicted() {
		return ErrEvicted
	}
	return nil
}

func (s *Lease) allow(stop func()) {
	if s.stop != nil {
		s.limiter.evictable--
	}
	if s.stop = stop; stop != nil {
		s.limiter.evictable++
	}
}

// Progress adds useful units of work: a key's slowest lease is evicted first.
func (s *Lease) Progress(units int) { s.useful.Add(int64(units)) }

// Evicted reports whether the lease was evicted. Any goroutine may call it.
func (s *Lease) Evicted() bool { return s.evicted.Load() }

// speed is the progress per second.
func (s *Lease) speed(now time.Time) float64 {
	return float64(s.useful.Load()) / max(now.Sub(s.began).Seconds(), 1e-3)
}
