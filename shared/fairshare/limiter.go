package fairshare

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Why a Limiter lends nothing.
var (
	ErrTooMany = errors.New("the key has too many leases")
	ErrFull    = errors.New("nothing is free: the queue is full, or the wait was too long")
	ErrEvicted = errors.New("the lease was needed for another key")
)

// defaultQueue is how many wait at once if Limits do not say.
const defaultQueue = 1024

// recheckPeriod is how often a wait looks for leases whose grace is over.
const recheckPeriod = 250 * time.Millisecond

// Limits bound a Limiter.
type Limits struct {
	Capacity int64 // units lent at once, such as slots or bytes
	PerKey   int64 // of these to one key; 0: all
	Leases   int   // of one key, with those that wait; 0: no limit
	Queue    int   // how many wait at once, of all keys; 0: a default

	// Share, if positive, is how many times what a key holds must be
	// free besides. A key that holds nothing is always served.
	Share int64

	Wait  time.Duration    // longest wait, then ErrFull; 0: until the context ends
	Grace time.Duration    // how long a lease is safe from eviction
	Clock func() time.Time // for Grace, and to evict the slowest; nil: the oldest is evicted
}

// A Limiter lends units of a capacity. While they are short, the keys that
// hold least are served first, and of these in turn; what a key asks for is
// served in its order, and none overtakes the first that has to wait. A key
// that holds more than the next one would loses its slowest evictable lease.
// It is safe for concurrent use.
type Limiter struct {
	limits Limits

	mu        sync.Mutex
	opened    int64 // leases so far
	held      int64
	leases    int // with those that wait for their first units
	queued    int
	evictable int // leases
	evictions int64
	holders   map[string]*holder // bounded by their leases
	turns     []*holder          // those with claims, the next first
}

// A holder is a key with leases. One without is forgotten.
type holder struct {
	key    string
	held   int64
	leases []*Lease
	claims []*claim // in the order in which they came
}

// A claim waits for units.
type claim struct {
	lease   *Lease
	units   int64
	decided chan error // takes one value
}

// NewLimiter returns a limiter that has lent nothing.
func NewLimiter(limits Limits) *Limiter {
	limits.PerKey = cmp.Or(limits.PerKey, limits.Capacity)
	limits.Queue = cmp.Or(limits.Queue, defaultQueue)
	return &Limiter{limits: limits, holders: map[string]*holder{}}
}

// Acquire lends units to a key, once they are free. It returns the error of
// ctx, ErrTooMany at once, or ErrFull.
func (l *Limiter) Acquire(ctx context.Context, key string, units int64) (*Lease, error) {
	l.mu.Lock()
	of := l.holders[key]
	if of == nil {
		of = &holder{key: key}
	}
	if l.limits.Leases > 0 && len(of.leases) >= l.limits.Leases || l.limits.Share > 0 && of.held > 0 && units > l.room(of) {
		l.mu.Unlock()
		return nil, ErrTooMany
	}
	l.opened++
	l.leases++
	lease := &Lease{limiter: l, of: of, index: len(of.leases), number: l.opened, began: l.limits.now()}
	of.leases = append(of.leases, lease)
	l.holders[key] = of
	if err := l.take(ctx, lease, units); err != nil {
		lease.Release()
		return nil, err
	}
	return lease, nil
}

// Held is how many units are lent.
func (l *Limiter) Held() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Leases is how many leases there are, with those that wait for their first units.
func (l *Limiter) Leases() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leases
}

// Queued is how many wait.
func (l *Limiter) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

// Evictions is how many leases were evicted.
func (l *Limiter) Evictions() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evictions
}

// Older is how many of a key's leases are older than one of them; nil: how
// many there are.
func (l *Limiter) Older(key string, lease *Lease) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.holders[key]
	if of == nil {
		return 0
	}
	for _, other := range of.leases {
		if lease == nil || other.number < lease.number {
			n++
		}
	}
	return n
}

// take lends units to a lease, now or later. It is called with the lock
// held and returns without.
func (l *Limiter) take(ctx context.Context, lease *Lease, units int64) error {
	switch {
	case lease.Evicted():
		l.mu.Unlock()
		return ErrEvicted
	case l.queued == 0 && l.held+units <= l.limits.Capacity && units <= l.room(lease.of):
		lease.add(units)
		l.mu.Unlock()
		return nil
	}
	c := &claim{lease: lease, units: units, decided: make(chan error, 1)}
	l.enqueue(c)
	l.serve()
	if l.queued > l.limits.Queue {
		l.refuseLongest(lease.of)
	}
	l.mu.Unlock()
	return l.await(ctx, c)
}

func (l *Limiter) await(ctx context.Context, c *claim) error {
	select {
	case err := <-c.decided: // at once
		return err
	default:
	}
	var limit, recheck <-chan time.Time
	if l.limits.Wait > 0 {
		timer := time.NewTimer(l.limits.Wait)
		defer timer.Stop()
		limit = timer.C
	}
	if l.limits.Grace > 0 {
		ticker := time.NewTicker(recheckPeriod)
		defer ticker.Stop()
		recheck = ticker.C
	}
	done := ctx.Done()
	for {
		select {
		case err := <-c.decided:
			return err
		case <-limit:
			l.giveUp(c, ErrFull)
		case <-done:
			l.giveUp(c, ctx.Err())
			done = nil
		case <-recheck:
			l.mu.Lock()
			l.serve()
			l.mu.Unlock()
		}
	}
}

// giveUp refuses a claim, unless it has been decided meanwhile.
func (l *Limiter) giveUp(c *claim, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.lease.claim == c {
		l.decide(c, err)
		l.serve()
	}
}

func (l *Limiter) enqueue(c *claim) {
	of := c.lease.of
	c.lease.claim = c
	if of.claims = append(of.claims, c); len(of.claims) == 1 {
		l.turns = append(l.turns, of)
	}
	l.queued++
}

// decide ends the wait of a claim. A served key has its next turn last.
func (l *Limiter) decide(c *claim, err error) {
	of := c.lease.of
	c.lease.claim = nil
	of.claims = without(of.claims, c)
	l.queued--
	if err == nil {
		c.lease.add(c.units)
	}
	if err == nil || len(of.claims) == 0 {
		l.turns = without(l.turns, of)
		if len(of.claims) > 0 {
			l.turns = append(l.turns, of)
		}
	}
	c.decided <- err
}

// room is how much more a key may hold by its own limits.
func (l *Limiter) room(of *holder) int64 {
	most := l.limits.PerKey
	if l.limits.Share > 0 && of.held > 0 {
		most = min(most, (l.limits.Capacity-l.held+of.held)/(l.limits.Share+1))
	}
	return most - of.held
}

// add changes what the lease has. The caller holds the lock.
func (s *Lease) add(units int64) {
	s.units += units
	s.of.held += units
	s.limiter.held += units
}

// serve grants what fits.
func (l *Limiter) serve() {
	for l.queued > 0 {
		next := l.next()
		if next == nil {
			return
		}
		if l.held+next.units > l.limits.Capacity {
			l.makeRoom(next)
			return
		}
		l.decide(next, nil)
	}
}

// next is the claim to be served first. A key at its own limit keeps its
// turn, unless all its leases wait for each other.
func (l *Limiter) next() (first *claim) {
	for i := 0; i < len(l.turns); i++ {
		of := l.turns[i]
		c := l.fitting(of)
		switch {
		case c == nil && of.deadlocked():
			l.decide(of.youngest(), ErrFull)
			i, first = -1, nil // the turns have changed
		case c != nil && (first == nil || of.held < first.lease.of.held):
			first = c
		}
	}
	return first
}

// fitting is a key's first claim within its own limits.
func (l *Limiter) fitting(of *holder) *claim {
	room := l.room(of)
	for _, c := range of.claims {
		if c.units <= room {
			return c
		}
	}
	return nil
}

// refuseLongest refuses the last claim of the key with most: of many as
// long, that of the newcomer.
func (l *Limiter) refuseLongest(newcomer *holder) {
	longest := newcomer
	for _, of := range l.turns {
		if len(of.claims) > len(longest.claims) {
			longest = of
		}
	}
	l.decide(longest.claims[len(longest.claims)-1], ErrFull)
}

func (l Limits) now() (now time.Time) {
	if l.Clock != nil {
		now = l.Clock()
	}
	return now
}

// without removes an element in place.
func without[E comparable](all []E, gone E) []E {
	kept := all[:0]
	for _, e := range all {
		if e != gone {
			kept = append(kept, e)
		}
	}
	clear(all[len(kept):])
	return kept
}

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
	s.add(-s.units)
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
	s.add(max(0, min(units, l.limits.Capacity-l.held, l.room(s.of))))
	return s.units
}

// Shrink returns the units above a size.
func (s *Lease) Shrink(units int64) {
	l := s.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.units > units {
		s.add(units - s.units)
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
