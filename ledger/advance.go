package ledger

import (
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// instant is the least time between two things.
const instant = time.Microsecond

// Due is when something happens next by itself: a period ends, or a grant
// starts, expires or is about to. Zero where nothing ever does, as for a test.
func (b *Books) Due() (due time.Time) {
	if b.Organization.Provisional() || b.Organization.IsTest() {
		return due
	}
	return b.next()
}

// next is when something is due next.
func (b *Books) next() (due time.Time) {
	due = b.periodAt(b.Organization.ClosedThrough).End
	for _, g := range b.Grants {
		for _, at := range g.instants() {
			if !at.IsZero() && at.Before(due) {
				due = at
			}
		}
	}
	return due
}

// instants are when something becomes of the grant by itself.
func (g *Grant) instants() []time.Time {
	switch {
	case g.Status == GrantScheduled:
		return []time.Time{g.Starts}
	case g.live():
		return []time.Time{g.Expires, g.notice()}
	}
	return nil
}

// decide does what was due until an instant, in the order in which it
// was: each at its own time, however late.
func (d Advanced) decide(b *Books, cause Cause) error {
	for due := b.next(); !due.After(d.Through); due = b.next() {
		cause.Event, cause.At = fmt.Sprintf("decision/%d/%d", cause.Offset, due.UnixMicro()), due
		if err := b.pass(due, cause); err != nil {
			return err
		}
	}
	return nil
}

// pass does what is due at an instant: what ends there ends before anything begins.
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

// begin starts a grant whose time has come, or announces that it expires soon.
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

// expire ends a grant. It does so in the period that ends with it, if one does.
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

// close ends the earliest period that is open, and opens the
// next: what is left of the plan's allowance, and of grants
// beyond what they may carry over, expires.
func (b *Books) close(due time.Time, cause Cause) error {
	if b.unseen(b.periodAt(due.Add(-instant))) {
		b.Organization.ClosedThrough = due
		return nil
	}
	last := cause
	last.At = due.Add(-instant)
	book, err := b.touch(last.At, last)
	if err != nil {
		return err
	}
	wasOut, pool := b.isOut(book, last.At), b.Organization.Pool
	b.apply(book, last, b.lapses(book)...)
	b.announceAhead(book, pool, last)
	b.Organization.ClosedThrough = book.Period.End
	if b.Organization.knows(book.Period) {
		b.emit(PeriodClosed, book, last)
	}
	if b.unseen(b.periodAt(due)) {
		return nil
	}
	next, err := b.touch(due, cause)
	if err != nil {
		return err
	}
	if wasOut && !b.isOut(next, due) {
		b.emit(QuotaRestored, next, cause)
	}
	b.changeTier(next, b.Organization.Plans.At(last.At).Tier, b.Organization.Plans.At(due).Tier, cause)
	return nil
}

// unseen reports whether a period lies before this ledger knew of the
// organization, and nothing was booked in it since: it is passed over.
func (b *Books) unseen(period calendar.Period) bool {
	_, booked := b.books[period.Start.Unix()]
	return !booked && !b.Organization.knows(period)
}

// lapses are what nobody can use behind the end of a period.
func (b *Books) lapses(book *Book) []move {
	lapses := []move{{from: Allowance, to: Expired, amount: book.Balances[Allowance], reason: Lapsed}}
	for _, g := range b.Grants {
		lapses = append(lapses, move{from: Credit, to: Expired, amount: g.excess(book.Period), reason: Lapsed, grant: g})
		g.catchUp(book.Period.End)
	}
	return lapses
}
