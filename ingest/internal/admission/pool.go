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
	ErrTooMany   = errors.New("the holder has too many loans")
	ErrTakenAway = errors.New("the bytes were needed for others")
)

// recheckPeriod is how often a waiting claim looks for a body that can be ended.
const recheckPeriod = 250 * time.Millisecond

// maxWaiting is how many claims wait at once; beyond, those of
// the holder with most loans are refused.
const maxWaiting = 1024

// PoolLimits bound a Pool.
type PoolLimits struct {
	Bytes     int64         // lent at once
	PerHolder int64         // of these to one holder
	Loans     int           // at once to one holder
	Grace     time.Duration // how long a loan is safe from being ended for others
	Wait      time.Duration // how long one waits for bytes before ErrPoolFull
}

// A Pool lends memory to bodies while they are read, judged and published. A
// holder is an organization, or a client network where there is no key yet.
//
// While memory is short, the holders with least are served first, and the
// slowest body of the holder with most is ended for one that would still hold
// less. Only bodies that are still being read can be ended; the others end by
// themselves. It is safe for concurrent use.
type Pool struct {
	limits PoolLimits
	clock  func() time.Time

	mu      sync.Mutex
	opened  int64 // loans so far
	held    int64
	holders map[string]*holder // bounded by the memory that they hold
	waiting []*claim           // in the order in which they came
}

// A holder exists while it has a loan or waits for one.
type holder struct {
	name  string
	held  int64
	loans []*Loan
}

// A claim waits for bytes.
type claim struct {
	loan    *Loan
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
func (p *Pool) Open(name string, bytes int64, end func()) (loan *Loan, waited time.Duration, err error) {
	p.mu.Lock()
	of := p.holders[name]
	if of == nil {
		of = &holder{name: name}
	}
	if len(of.loans) >= p.limits.Loans {
		p.mu.Unlock()
		return nil, 0, ErrTooMany
	}
	p.holders[name] = of
	p.opened++
	loan = &Loan{pool: p, of: of, index: len(of.loans), number: p.opened, began: p.clock(), end: end}
	of.loans = append(of.loans, loan)
	if waited, err = p.take(loan, bytes); err != nil {
		loan.Close()
		return nil, waited, err
	}
	return loan, waited, nil
}

// Held is how many bytes are lent.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Loans is how many bodies hold bytes or wait for their first.
func (p *Pool) Loans() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holders {
		n += int64(len(h.loans))
	}
	return n
}

// Before is how many of a holder's loans were opened before one
// of these; nil: before the next.
func (p *Pool) Before(name string, loan *Loan) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.holders[name]
	if of == nil {
		return 0
	}
	for _, other := range of.loans {
		if loan == nil || other.number < loan.number {
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

// take gives bytes to a loan, now or later. It is called with
// the lock held and returns without.
func (p *Pool) take(l *Loan, bytes int64) (waited time.Duration, err error) {
	switch {
	case l.Over():
		p.mu.Unlock()
		return 0, ErrTakenAway
	case len(p.waiting) == 0 && p.fits(l, bytes):
		p.add(l, bytes)
		p.mu.Unlock()
		return 0, nil
	}
	mine := &claim{loan: l, bytes: bytes, granted: make(chan error, 1)}
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
	if c.loan.claim == c {
		p.decide(c, ErrPoolFull)
		p.serve()
	}
}

// decide ends the wait of a claim.
func (p *Pool) decide(c *claim, err error) {
	p.waiting = slices.DeleteFunc(p.waiting, func(other *claim) bool { return other == c })
	c.loan.claim = nil
	if err == nil {
		p.add(c.loan, c.bytes)
	}
	c.granted <- err
}

func (p *Pool) fits(l *Loan, bytes int64) bool {
	return p.held+bytes <= p.limits.Bytes && l.of.held+bytes <= p.limits.PerHolder
}

func (p *Pool) add(l *Loan, bytes int64) {
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
		if !p.fits(next.loan, next.bytes) {
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
		switch of := c.loan.of; {
		case of.held+c.bytes <= p.limits.PerHolder:
			if first == nil || of.held < first.loan.of.held {
				first = c
			}
		case of.stuck():
			p.refuseYoungest(of)
			i = -1 // the queue has changed
			first = nil
		}
	}
	return first
}

// busiest is the holder with most loans among those that wait.
func (p *Pool) busiest() (most *holder) {
	for _, c := range p.waiting {
		if most == nil || len(c.loan.of.loans) > len(most.loans) {
			most = c.loan.of
		}
	}
	return most
}
