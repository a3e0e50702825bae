package ledger

import (
	"fmt"
	"time"
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
	if !b.Organization.PeriodAt(b.Organization.ClosedThrough).End.After(due) {
		if err := b.close(due, cause); err != nil {
			return err
		}
		for _, budget := range b.Budgets.Kept {
			b.renew(budget, due, cause)
		}
	}
	for _, g := range b.Grants {
		if g.Status == GrantScheduled && !g.Starts.After(due) {
			if err := b.start(g, Issued, cause); err != nil {
				return err
			}
		}
		if notice := g.notice(); g.live() && !notice.IsZero() && !notice.After(due) {
			g.Announced = true
			b.Events = append(b.Events, g.event(GrantExpiring, b.Organization.ID, cause))
		}
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
	b.Events = append(b.Events, g.event(GrantHasExpired, b.Organization.ID, cause))
	return nil
}
