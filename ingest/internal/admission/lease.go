package admission

import (
	"sync/atomic"
	"time"
)

// A Lease is what one body holds. It belongs to one goroutine.
type Lease struct {
	pool   *Pool
	of     *holder
	index  int   // among the holder's leases
	number int64 // of all that were opened
	bytes  int64
	began  time.Time

	useful atomic.Int64 // bytes that came
	over   atomic.Bool  // it was evicted
	end    func()       // makes the reader stop; nil once the body is whole
	claim  *claim       // nil: it waits for nothing
}

// Grow lends more bytes.
func (l *Lease) Grow(bytes int64) (waited time.Duration, err error) {
	l.pool.mu.Lock()
	return l.pool.take(l, bytes)
}

// Received adds useful bytes of the body: a holder's slowest body is
// evicted first.
func (l *Lease) Received(bytes int) { l.useful.Add(int64(bytes)) }

// Over reports whether the lease was evicted.
func (l *Lease) Over() bool { return l.over.Load() }

// Complete marks the body as read: it can't be evicted any more.
func (l *Lease) Complete() error {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.end = nil
	if l.Over() {
		return ErrTakenAway
	}
	return nil
}

// Shrink returns the bytes above a size.
func (l *Lease) Shrink(bytes int64) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.bytes > bytes {
		l.pool.add(l, bytes-l.bytes)
		l.pool.serve()
	}
}

// Close returns everything. It is called once.
func (l *Lease) Close() {
	p, of := l.pool, l.of
	p.mu.Lock()
	defer p.mu.Unlock()
	l.end = nil
	p.add(l, -l.bytes)
	last := len(of.leases) - 1
	of.leases[l.index], of.leases[last].index = of.leases[last], l.index
	of.leases[last] = nil
	if of.leases = of.leases[:last]; last == 0 {
		delete(p.holders, of.name)
	}
	p.serve()
}

// pace returns the useful bytes per second.
func (l *Lease) pace(now time.Time) float64 {
	return float64(l.useful.Load()) / max(now.Sub(l.began).Seconds(), 1e-3)
}
