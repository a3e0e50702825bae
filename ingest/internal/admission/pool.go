package admission

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

// A Loan is what one body holds. It belongs to one goroutine.
type Loan struct {
	pool   *Pool
	of     *holder
	index  int   // among the holder's loans
	number int64 // of all that were opened
	bytes  int64
	began  time.Time

	useful atomic.Int64 // bytes that came
	over   atomic.Bool  // it was ended for others
	end    func()       // makes the reader stop; nil once the body is whole
	claim  *claim       // what it waits for
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

// Grow lends bytes more.
func (l *Loan) Grow(bytes int64) (waited time.Duration, err error) {
	l.pool.mu.Lock()
	return l.pool.take(l, bytes)
}

// Came notes that useful bytes of the body came: of one holder's
// bodies the slowest is ended first.
func (l *Loan) Came(bytes int) { l.useful.Add(int64(bytes)) }

// Over reports whether the loan was ended for others.
func (l *Loan) Over() bool { return l.over.Load() }

// Whole means that the body is read: its loan now ends by itself.
func (l *Loan) Whole() error {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.end = nil
	if l.Over() {
		return ErrTakenAway
	}
	return nil
}

// Shrink gives back what is above bytes.
func (l *Loan) Shrink(bytes int64) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.bytes > bytes {
		l.pool.add(l, bytes-l.bytes)
		l.pool.serve()
	}
}

// Close gives everything back. It is called once.
func (l *Loan) Close() {
	p, of := l.pool, l.of
	p.mu.Lock()
	defer p.mu.Unlock()
	l.end = nil
	p.add(l, -l.bytes)
	last := len(of.loans) - 1
	of.loans[l.index], of.loans[last].index = of.loans[last], l.index
	of.loans[last] = nil
	if of.loans = of.loans[:last]; last == 0 {
		delete(p.holders, of.name)
	}
	p.serve()
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

// makeRoom ends bodies of the holders with most until enough
// comes back for a claim.
func (p *Pool) makeRoom(c *claim) {
	missing := p.held + c.bytes - p.limits.Bytes - p.comingBack()
	stuck := p.stuck()
	for missing > 0 {
		victim := p.victim(c, stuck)
		if victim == nil {
			break
		}
		missing -= victim.bytes
		p.takeAway(victim)
	}
	if missing > 0 && stuck {
		p.refuseYoungest(nil)
	}
}

// comingBack is what ended bodies still hold.
func (p *Pool) comingBack() (bytes int64) {
	for _, h := range p.holders {
		bytes += h.comingBack()
	}
	return bytes
}

func (h *holder) comingBack() (bytes int64) {
	for _, l := range h.loans {
		if l.Over() {
			bytes += l.bytes
		}
	}
	return bytes
}

// stuck reports whether nothing will come back: all wait for each other.
func (p *Pool) stuck() bool {
	for _, h := range p.holders {
		if !h.stuck() {
			return false
		}
	}
	return true
}

func (h *holder) stuck() bool {
	for _, l := range h.loans {
		if l.claim == nil {
			return false
		}
	}
	return true
}

// victim is the slowest body of the holder with most, if that
// holds more than the claim's holder would.
func (p *Pool) victim(c *claim, stuck bool) (slowest *Loan) {
	most, now := c.loan.of.held+c.bytes, p.clock()
	var greedy *holder
	for _, h := range p.holders {
		if left := h.held - h.comingBack(); left > most && h != c.loan.of {
			greedy, most = h, left
		}
	}
	if greedy == nil {
		return nil
	}
	for _, l := range greedy.loans {
		if l.end == nil || l.Over() || !stuck && now.Sub(l.began) < p.limits.Grace {
			continue
		}
		if slowest == nil || l.pace(now) < slowest.pace(now) {
			slowest = l
		}
	}
	return slowest
}

// pace is how many useful bytes came in a second.
func (l *Loan) pace(now time.Time) float64 {
	return float64(l.useful.Load()) / max(now.Sub(l.began).Seconds(), 1e-3)
}

func (p *Pool) takeAway(l *Loan) {
	l.over.Store(true)
	if l.claim != nil {
		p.decide(l.claim, ErrTakenAway)
		return
	}
	l.end()
}

// refuseYoungest breaks a deadlock of claims: those of one
// holder, or of all where it is nil.
func (p *Pool) refuseYoungest(of *holder) {
	var youngest *claim
	for _, c := range p.waiting {
		if (of == nil || c.loan.of == of) && (youngest == nil || !c.loan.began.Before(youngest.loan.began)) {
			youngest = c
		}
	}
	p.decide(youngest, ErrPoolFull)
}
