package ledger

import (
	"errors"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// States of an organization.
const (
	Active    = "active"
	Exhausted = "exhausted"
	Suspended = "suspended"
)

// ErrNoOrganization is the error for an organization that is not in the
// ledger, or was not at the given instant.
var ErrNoOrganization = errors.New("no such organization")

// DefaultAnchorDay makes periods calendar months.
const DefaultAnchorDay = 1

// An Organization is a customer. If its logs came before its creation
// it is provisional: charged without an allowance and settled when its
// plan arrives.
type Organization struct {
	ID string
	Anchoring
	Plans     Plans
	Suspended bool
	Opened    time.Time // when this ledger first saw it

	Thresholds Thresholds // its own; nil: Usual
	Usual      Thresholds // the installation's, as last decided

	Budgets       int
	Pool          int64     // left of the active grants, in bytes
	ClosedThrough time.Time // periods ending by then are closed
	Decisions     int64
	DecidedAt     time.Time // of the last decision, in real time
	Clock         time.Time // time of a test; zero: no test
	Head          Hash      // of the last decision
	Statements    int64     // how many were made
	Stated        Hash      // of the last statement
}

// NotBefore returns the instant of a decision: never before the last
// one nor in a closed period, whatever the clock.
func (o Organization) NotBefore(now time.Time) time.Time {
	if o.IsTest() {
		return o.Clock
	}
	for _, at := range []time.Time{o.DecidedAt, o.ClosedThrough} {
		if at.After(now) {
			now = at
		}
	}
	return now
}

// Provisional reports whether only logs of the organization have arrived.
func (o Organization) Provisional() bool {
	return len(o.Plans) == 0
}

// HasPlanAt reports whether the organization had a plan at an instant.
func (o Organization) HasPlanAt(at time.Time) bool {
	return !o.Provisional() && !at.Before(o.Plans[0].From)
}

// State returns the organization's state at an instant in book's period.
func (o Organization) State(book Book, at time.Time) string {
	plan := o.Plans.At(at)
	switch {
	case o.Suspended:
		return Suspended
	case book.Remaining() == 0 && book.Balances[Overage] >= plan.overageAllowed(), book.refuses(plan):
		return Exhausted
	}
	return Active
}

// BookedIn returns the period in which logs accepted at an instant are
// booked: their own or the earliest open one.
func (o Organization) BookedIn(at time.Time) calendar.Period {
	if o.isClosed(at) {
		at = o.ClosedThrough
	}
	return o.PeriodAt(at)
}

// ErrClosed means that a period is closed: its book no longer changes.
var ErrClosed = errors.New("BUG: the period is closed")

// maxCreationDelay is the longest time until an organization's creation
// arrives, except in a rebuilt ledger.
const maxCreationDelay = 24 * time.Hour

// sawWhole reports whether the ledger has seen the whole period: a
// rebuilt one has only the log that is left.
func (o Organization) sawWhole(period calendar.Period) bool {
	from := o.Plans[0].From
	if period.Start.After(from) {
		from = period.Start
	}
	return o.Opened.Sub(from) < maxCreationDelay
}

// isClosed reports whether logs accepted at an instant can no longer be
// booked in their own period.
func (o Organization) isClosed(at time.Time) bool { return at.Before(o.ClosedThrough) }
