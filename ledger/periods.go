package ledger

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A journal collects the transfers and events of opened books.
type journal struct {
	Transfers []Transfer
	Events    []Event

	lines int // of the running cause
}

// Reserve allocates transfers for so many charges, mostly one for each.
func (j *journal) Reserve(charges int) { j.Transfers = slices.Grow(j.Transfers, charges) }

// correct sets the period that transfers from first on correct.
func (j *journal) correct(first int, of time.Time) {
	for i := range j.Transfers[first:] {
		j.Transfers[first+i].Of = of
	}
}

// periods are an organization's open periods: their books and its grants,
// between whose accounts bytes are moved.
type periods struct {
	Organization Organization
	Grants       Grants // live ones
	journal

	books map[int64]*Book // by period start, Unix seconds; bounded by the open periods
}

// All returns the books by period start.
func (p *periods) All() []Book {
	all := make([]Book, 0, len(p.books))
	for _, book := range p.books {
		all = append(all, p.withPool(book))
	}
	slices.SortFunc(all, func(x, y Book) int { return x.Period.Start.Compare(y.Period.Start) })
	return all
}

// withPool returns a book with what is left of the grants.
func (p *periods) withPool(book *Book) Book {
	withPool := *book
	withPool.Pool = p.Organization.Pool
	return withPool
}

// accept splits accepted bytes between the allowance, the grants, the
// plan's overage and, beyond that, overshoot.
func (p *periods) accept(book *Book, bytes int64, at time.Time, reason Reason) []move {
	moves, left := p.Grants.cover(book, bytes, at, reason)
	overage := min(left, p.overageLeft(book))
	return append(moves, move{from: Issuer, to: Overage, amount: overage, reason: reason},
		move{from: Issuer, to: Overshoot, amount: left - overage, reason: reason})
}

// overageLeft returns how much more overage a book takes by the last
// plan of its period. That of the acceptance would make it depend on
// the order in which partitions are booked. Without a plan it takes all.
func (p *periods) overageLeft(book *Book) int64 {
	if p.Organization.Provisional() {
		return math.MaxInt64
	}
	last := p.Organization.Plans.At(book.Period.End.Add(-instant))
	return max(0, last.overageAllowed()-book.Balances[Overage])
}

// At returns the book of t's period as a touch would make it. It changes nothing.
func (p *periods) At(t time.Time) (Book, error) {
	period := p.Organization.PeriodAt(t)
	if book, ok := p.books[period.Start.Unix()]; ok {
		return p.withPool(book), nil
	}
	untouched := periods{Organization: p.Organization, books: map[int64]*Book{}}
	untouched.Organization.ClosedThrough = time.Time{} // unchanged
	book, err := untouched.touch(t, Cause{At: t})
	if err != nil {
		return Book{}, err
	}
	return p.withPool(book), nil
}

// touch opens the book of t's period with its allowance. A closed one
// was not read: opening would overwrite it.
func (p *periods) touch(t time.Time, cause Cause) (*Book, error) {
	period := p.Organization.PeriodAt(t)
	if book, ok := p.books[period.Start.Unix()]; ok {
		return book, nil
	}
	if !period.End.After(p.Organization.ClosedThrough) {
		return nil, fmt.Errorf("organization %q, period of %s: %w", p.Organization.ID, period.Start.Format(time.DateOnly), ErrClosed)
	}
	book := &Book{Period: period}
	p.books[period.Start.Unix()] = book
	if !p.Organization.Provisional() {
		p.grantAllowance(book, cause)
	}
	return book, nil
}

// grantAllowance issues the allowance of the plan at the period's
// start. Of what came before the first plan it leaves the overage that
// the plan accepts.
func (p *periods) grantAllowance(book *Book, cause Cause) {
	plan := p.Organization.Plans.At(book.Period.Start)
	p.post(book, cause, book.issue(p.Organization.share(plan.Terms().Quota, book.Period), Issued)...)
	excess := book.Balances[Overage] - plan.overageAllowed()
	p.post(book, cause, move{from: Overage, to: Overshoot, amount: max(0, excess), reason: Settled})
}

// post books nonzero moves and emits their events.
func (p *periods) post(book *Book, cause Cause, moves ...move) {
	wasOut, before := p.isExhausted(book, cause.At), *book
	allowed, pool := p.allowed(book, cause.At), p.Organization.Pool
	p.apply(book, cause, moves...)
	book.countRaise(allowed, p.allowed(book, cause.At))
	p.announce(book, before, wasOut, cause)
	p.announceAhead(book, pool, cause)
}

// apply is post without events.
func (p *periods) apply(book *Book, cause Cause, moves ...move) {
	for _, m := range moves {
		if m.amount == 0 {
			continue
		}
		transfer := Transfer{
			Organization: p.Organization.ID, Period: book.Period,
			From: m.from, To: m.to, Amount: m.amount, Reason: m.reason, Cause: cause, Line: p.lines,
		}
		if m.grant != nil {
			transfer.Grant = m.grant.ID
			p.Organization.Pool += m.grant.take(m)
			m.grant.end(book.Period.End)
			if m.from == Credit && m.grant.RolloverCap != nil && book.Period.Start.After(p.Organization.ClosedThrough) {
				m.grant.addAhead(book.Period.Start, m.amount) // in a period after an open one
			}
		}
		book.Balances.Apply(transfer)
		p.Transfers = append(p.Transfers, transfer)
		p.lines++
	}
}

// isExhausted reports whether a book accepts nothing more at an instant.
func (p *periods) isExhausted(book *Book, at time.Time) bool {
	return p.withPool(book).isExhausted(p.Organization.Plans.in(book, at))
}

// allowed returns how much of a book may be used by the plan of an instant.
func (p *periods) allowed(book *Book, at time.Time) int64 {
	return p.withPool(book).limit(p.Organization.Plans.in(book, at))
}

// announce emits each threshold once in a period, and each exhaustion,
// restoration and start of overage.
func (p *periods) announce(book *Book, before Book, wasOut bool, cause Cause) {
	withPool := p.withPool(book)
	for _, percent := range ThresholdsOf(p.Organization).crossed(withPool.Reached, withPool.Used(), withPool.Allowance()) {
		book.Reached = percent
		p.Events = append(p.Events, Event{
			Kind: ThresholdReached, Organization: p.Organization.ID, Book: p.withPool(book), Percent: percent, Cause: cause,
		})
	}
	if before.Balances[Overage] == 0 && book.Balances[Overage] > 0 && p.Organization.Plans.in(book, cause.At).Overage {
		p.emit(OverageBegun, book, cause)
	}
	switch isExhausted := p.isExhausted(book, cause.At); {
	case isExhausted && !wasOut:
		p.emit(QuotaExhausted, book, cause)
	case wasOut && !isExhausted:
		p.emit(QuotaRestored, book, cause)
	}
}

// announceAhead announces for later open periods whose grants a change
// of book has used or raised. pool was their pool before.
func (p *periods) announceAhead(of *Book, pool int64, cause Cause) {
	if pool == p.Organization.Pool || len(p.books) < 2 {
		return
	}
	for _, ahead := range p.All() {
		if !ahead.Period.Start.After(of.Period.Start) {
			continue
		}
		before, book := ahead, p.books[ahead.Period.Start.Unix()]
		before.Pool = pool
		plan := p.Organization.Plans.in(book, cause.At)
		book.countRaise(before.limit(plan), p.allowed(book, cause.At))
		p.announce(book, before, before.isExhausted(plan), cause)
	}
}

func (p *periods) emit(kind EventKind, book *Book, cause Cause) {
	p.Events = append(p.Events, Event{Kind: kind, Organization: p.Organization.ID, Book: p.withPool(book), Cause: cause})
}

func (p *periods) changeTier(book *Book, before, after Tier, cause Cause) {
	if before != after {
		p.Events = append(p.Events, Event{
			Kind: TierChanged, Organization: p.Organization.ID, Book: p.withPool(book), Cause: cause, Before: before, After: after,
		})
	}
}

// carriedOver returns what was left of grants at the end of a period.
func (p *periods) carriedOver(end time.Time) int64 {
	left := p.Organization.Pool
	for _, book := range p.books {
		if !book.Period.Start.Before(end) {
			left -= book.Balances[Credit]
		}
	}
	return left
}

// next returns the next due time.
func (p *periods) next() (due time.Time) {
	due = p.Organization.PeriodAt(p.Organization.ClosedThrough).End
	for _, g := range p.Grants {
		for _, at := range g.dueTimes() {
			if !at.IsZero() && at.Before(due) {
				due = at
			}
		}
	}
	return due
}

// close ends the earliest open period and opens the next. What is left
// of the allowance expires, and of grants what exceeds their rollover cap.
func (p *periods) close(due time.Time, cause Cause) error {
	if p.beforeLedger(p.Organization.PeriodAt(due.Add(-instant))) {
		p.Organization.ClosedThrough = due
		return nil
	}
	last := cause
	last.At = due.Add(-instant)
	book, err := p.touch(last.At, last)
	if err != nil {
		return err
	}
	wasOut, pool := p.isExhausted(book, last.At), p.Organization.Pool
	p.apply(book, last, p.Grants.lapses(book)...)
	p.announceAhead(book, pool, last)
	p.Organization.ClosedThrough = book.Period.End
	if p.Organization.sawWhole(book.Period) {
		p.emit(PeriodClosed, book, last)
	}
	if p.beforeLedger(p.Organization.PeriodAt(due)) {
		return nil
	}
	next, err := p.touch(due, cause)
	if err != nil {
		return err
	}
	if wasOut && !p.isExhausted(next, due) {
		p.emit(QuotaRestored, next, cause)
	}
	p.changeTier(next, p.Organization.Plans.At(last.At).Tier, p.Organization.Plans.At(due).Tier, cause)
	return nil
}

// beforeLedger reports whether a period lies before this ledger saw the
// organization and has no bookings: it is skipped.
func (p *periods) beforeLedger(period calendar.Period) bool {
	_, booked := p.books[period.Start.Unix()]
	return !booked && !p.Organization.sawWhole(period)
}

// owed splits bytes of an adjustment: what nothing covers is overage,
// whatever the plan.
func (p *periods) owed(book *Book, bytes int64, at time.Time) []move {
	moves, left := p.Grants.cover(book, bytes, at, Corrected)
	return append(moves, move{from: Issuer, to: Overage, amount: left, reason: Corrected})
}
