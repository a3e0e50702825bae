package admission

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Why a Pool lends nothing.
var (
	ErrPoolFull  = errors.New("too many bytes are in flight")
	ErrTooMany   = errors.New("the holder has too many leases")
	ErrTakenAway = errors.New("the bytes were needed for others")
)

// recheckPeriod is how often a waiting claim looks for a body to evict.
const recheckPeriod = 250 * time.Millisecond

// maxWaiting is how many claims wait; beyond, those of the holder with
// most leases are refused.
const maxWaiting = 1024

// PoolLimits bound a Pool.
type PoolLimits struct {
	Bytes     int64         // lent at once
	PerHolder int64         // of these to one holder
	Leases    int           // at once to one holder
	Grace     time.Duration // how long a lease is safe from eviction
	Wait      time.Duration // how long one waits for bytes before ErrPoolFull
}

// A Pool lends memory to bodies while they are read, processed and
// published. A holder is an organization, or a client network while
// there is no key.
//
// While memory is short, the smallest holders are served first, and the
// slowest body of the largest holder is evicted for one that would
// still hold less. Only bodies still being read can be evicted. It is
// safe for concurrent use.
type Pool struct {
	limits PoolLimits
	clock  func() time.Time

	mu      sync.Mutex
	opened  int64 // leases so far
	held    int64
	holders map[string]*holder // bounded by the memory that they hold
	waiting []*claim           // in the order in which they came
}

// A holder exists while it has a lease or waits for one.
type holder struct {
	name   string
	held   int64
	leases []*Lease
}

// A claim waits for bytes.
type claim struct {
	lease   *Lease
	bytes   int64
	granted chan error // takes one value
}

// NewPool makes a pool.
func NewPool(limits PoolLimits, clock func() time.Time) *Pool {
	return &Pool{limits: limits, clock: clock, holders: map[string]*holder{}}
}

// Open lends bytes to a holder, once they are there. end is called at most
// once, never after Whole or Close, when others need the memory: it makes the
// body's reader stop, and must neither wait nor call the pool. The time
// waited does not count against the body.
func (p *Pool) Open(name string, bytes int64, end func()) (lease *Lease, waited time.Duration, err error) {
	p.mu.Lock()
	of := p.holders[name]
	if of == nil {
		of = &holder{name: name}
	}
	if len(of.leases) >= p.limits.Leases {
		p.mu.Unlock()
		return nil, 0, ErrTooMany
	}
	p.holders[name] = of
	p.opened++
	lease = &Lease{pool: p, of: of, index: len(of.leases), number: p.opened, began: p.clock(), end: end}
	of.leases = append(of.leases, lease)
	if waited, err = p.take(lease, bytes); err != nil {
		lease.Close()
		return nil, waited, err
	}
	return lease, waited, nil
}

// Held is how many bytes are lent.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Leases is how many bodies hold bytes or wait for their first.
func (p *Pool) Leases() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holders {
		n += int64(len(h.leases))
	}
	return n
}

// Before is how many of a holder's leases were opened before one
// of these; nil: before the next.
func (p *Pool) Before(name string, lease *Lease) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.holders[name]
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

// Waiting is how many bodies wait for bytes.
func (p *Pool) Waiting() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.waiting))
}

// take gives bytes to a lease, now or later. It is called with
// the lock held and returns without.
func (p *Pool) take(l *Lease, bytes int64) (waited time.Duration, err error) {
	switch {
	case l.Over():
		p.mu.Unlock()
		return 0, ErrTakenAway
	case len(p.waiting) == 0 && p.fits(l, bytes):
		p.add(l, bytes)
		p.mu.Unlock()
		return 0, nil
	}
	mine := &claim{lease: l, bytes: bytes, granted: make(chan error, 1)}
	l.claim, p.waiting = mine, append(p.waiting, mine)
	p.serve()
	p.mu.Unlock()
	return p.await(mine)
}

func (p *Pool) await(mine *claim) (waited time.Duration, err error) {
	select {
	case err = <-mine.granted: // at once
		return 0, err
	default:
	}
	began := p.clock()
	limit, recheck := time.NewTimer(p.limits.Wait), time.NewTicker(recheckPeriod)
	defer limit.Stop()
	defer recheck.Stop()
	for {
		select {
		case err = <-mine.granted:
			return p.clock().Sub(began), err
		case <-limit.C:
			p.giveUp(mine)
		case <-recheck.C:
			p.look()
		}
	}
}

func (p *Pool) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve()
}

// giveUp refuses a claim, unless that has been decided meanwhile.
func (p *Pool) giveUp(c *claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.lease.claim == c {
		p.decide(c, ErrPoolFull)
		p.serve()
	}
}

// decide ends the wait of a claim.
func (p *Pool) decide(c *claim, err error) {
	p.waiting = slices.DeleteFunc(p.waiting, func(other *claim) bool { return other == c })
	c.lease.claim = nil
	if err == nil {
		p.add(c.lease, c.bytes)
	}
	c.granted <- err
}

func (p *Pool) fits(l *Lease, bytes int64) bool {
	return p.held+bytes <= p.limits.Bytes && l.of.held+bytes <= p.limits.PerHolder
}

func (p *Pool) add(l *Lease, bytes int64) {
	l.bytes += bytes
	l.of.held += bytes
	p.held += bytes
}

// serve grants what fits to the holders with least. None
// overtakes the first that has to wait.
func (p *Pool) serve() {
	for len(p.waiting) > maxWaiting {
		p.refuseYoungest(p.busiest())
	}
	for {
		next := p.next()
		if next == nil {
			return
		}
		if !p.fits(next.lease, next.bytes) {
			p.makeRoom(next)
			return
		}
		p.decide(next, nil)
	}
}

// next is the claim to be served first, but none of a holder at its own limit.
func (p *Pool) next() (first *claim) {
	for i := 0; i < len(p.waiting); i++ {
		c := p.waiting[i]
		switch of := c.lease.of; {
		case of.held+c.bytes <= p.limits.PerHolder:
			if first == nil || of.held < first.lease.of.held {
				first = c
			}
		case of.deadlocked():
			p.refuseYoungest(of)
			i = -1 // the queue has changed
			first = nil
		}
	}
	return first
}

// busiest is the holder with most leases among those that wait.
func (p *Pool) busiest() (most *holder) {
	for _, c := range p.waiting {
		if most == nil || len(c.lease.of.leases) > len(most.leases) {
			most = c.lease.of
		}
	}
	return most
}
