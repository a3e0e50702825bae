package ledger

import (
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// instant is the smallest difference between two times.
const instant = time.Microsecond

// Due returns when something is next due: a period ends, or a grant
// starts, expires or is about to. Zero: never, as for a test.
func (b *Books) Due() (due time.Time) {
	if b.Organization.Provisional() || b.Organization.IsTest() {
		return due
	}
	return b.next()
}

// next returns the next due time.
func (b *Books) next() (due time.Time) {
	due = b.periodAt(b.Organization.ClosedThrough).End
	for _, g := range b.Grants {
		for _, at := range g.dueTimes() {
			if !at.IsZero() && at.Before(due) {
				due = at
			}
		}
	}
	return due
}

// dueTimes are when something is due about the grant.
func (g *Grant) dueTimes() []time.Time {
	switch {
	case g.Status == GrantScheduled:
		return []time.Time{g.Starts}
	case g.live():
		return []time.Time{g.Expires, g.notice()}
	}
	return nil
}

// decide does everything due until an instant in order, each at its own
// time, however late.
func (d Advanced) decide(b *Books, cause Cause) error {
	for due := b.next(); !due.After(d.Through); due = b.next() {
		cause.Event, cause.At = fmt.Sprintf("decision/%d/%d", cause.Offset, due.UnixMicro()), due
		if err := b.pass(due, cause); err != nil {
			return err
		}
	}
	return nil
}

// pass does everything due at an instant. Ends come before starts.
func (b *Books) pass(due time.Time, cause Cause) error {
	for _, g := range b.Grants {
		if g.live() && g.Status == GrantActive && !g.Expires.IsZero() && !g.Expires.After(due) {
			if err := b.expire(g, cause); err != nil {
				return err
			}
		}
	}
	if !b.periodAt(b.Organization.ClosedThrough).End.After(due) {
		if err := b.close(due, cause); err != nil {
			return err
		}
		b.renewAll(due, cause)
	}
	for _, g := range b.Grants {
		if err := b.begin(g, due, cause); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a grant or announces its coming expiry.
func (b *Books) begin(g *Grant, due time.Time, cause Cause) error {
	if g.Status == GrantScheduled && !g.Starts.After(due) {
		if err := b.start(g, Issued, cause); err != nil {
			return err
		}
	}
	if notice := g.notice(); g.live() && !notice.IsZero() && !notice.After(due) {
		g.Announced = true
		b.emitGrant(GrantExpiring, g, cause)
	}
	return nil
}

// expire ends a grant, in the period that ends with it, if any.
func (b *Books) expire(g *Grant, cause Cause) error {
	cause.At = cause.At.Add(-instant)
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	g.Status, g.Ended = GrantExpired, g.Expires
	b.post(book, cause, move{from: Credit, to: Expired, amount: g.Remaining, reason: Lapsed, grant: g})
	b.emitGrant(GrantHasExpired, g, cause)
	return nil
}

// close ends the earliest open period and opens the next. What is left
// of the allowance expires, and of grants what exceeds their rollover cap.
func (b *Books) close(due time.Time, cause Cause) error {
	if b.beforeLedger(b.periodAt(due.Add(-instant))) {
		b.Organization.ClosedThrough = due
		return nil
	}
	last := cause
	last.At = due.Add(-instant)
	book, err := b.touch(last.At, last)
	if err != nil {
		return err
	}
	wasOut, pool := b.isExhausted(book, last.At), b.Organization.Pool
	b.apply(book, last, b.lapses(book)...)
	b.announceAhead(book, pool, last)
	b.Organization.ClosedThrough = book.Period.End
	if b.Organization.sawWhole(book.Period) {
		b.emit(PeriodClosed, book, last)
	}
	if b.beforeLedger(b.periodAt(due)) {
		return nil
	}
	next, err := b.touch(due, cause)
	if err != nil {
		return err
	}
	if wasOut && !b.isExhausted(next, due) {
		b.emit(QuotaRestored, next, cause)
	}
	b.changeTier(next, b.Organization.Plans.At(last.At).Tier, b.Organization.Plans.At(due).Tier, cause)
	return nil
}

// beforeLedger reports whether a period lies before this ledger saw the
// organization and has no bookings: it is skipped.
func (b *Books) beforeLedger(period calendar.Period) bool {
	_, booked := b.books[period.Start.Unix()]
	return !booked && !b.Organization.sawWhole(period)
}

// lapses are the moves that expire at the end of a period.
func (b *Books) lapses(book *Book) []move {
	lapses := []move{{from: Allowance, to: Expired, amount: book.Balances[Allowance], reason: Lapsed}}
	for _, g := range b.Grants {
		lapses = append(lapses, move{from: Credit, to: Expired, amount: g.excess(book.Period), reason: Lapsed, grant: g})
		g.dropAhead(book.Period.End)
	}
	return lapses
}
