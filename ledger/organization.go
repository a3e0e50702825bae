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
// ledger, or was not at the instant asked for.
var ErrNoOrganization = errors.New("no such organization")

// DefaultAnchorDay makes periods calendar months.
const DefaultAnchorDay = 1

// An Organization is a customer. One whose logs came before its creation is
// provisional: charged without an allowance, settled when its plan arrives.
type Organization struct {
	ID string
	Anchoring
	Plans     Plans
	Suspended bool
	Opened    time.Time // when this ledger first knew of it

	Thresholds Thresholds // its own; nil: those of the installation

	Budgets       int       // how many it has
	Pool          int64     // what is left of the grants that are in force, in bytes
	ClosedThrough time.Time // periods that end by then are closed
	Decisions     int64     // how many were made about it
	DecidedAt     time.Time // instant of the last of them, by the clock of everybody
	Clock         time.Time // what time it is for a test; zero: the organization is none
}

// NotBefore is the instant of a decision: never before the last one, nor in
// a closed period, whatever a clock says.
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

// Provisional reports whether the ledger has only seen logs of
// the organization so far.
func (o Organization) Provisional() bool {
	return len(o.Plans) == 0
}

// HasPlanAt reports whether the organization had a plan at an instant.
func (o Organization) HasPlanAt(at time.Time) bool {
	return !o.Provisional() && !at.Before(o.Plans[0].From)
}

// State is the organization's state at an instant, of which book is the period's.
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

// BookedIn is the period in which what was accepted at an instant is booked:
// its own, or the earliest that is open.
func (o Organization) BookedIn(at time.Time) calendar.Period {
	if o.isClosed(at) {
		at = o.ClosedThrough
	}
	return o.PeriodAt(at)
}

// ErrClosed means that a period is closed: its book stays as it is.
var ErrClosed = errors.New("BUG: the period is closed")

// settlingIn is how long after its creation an organization is known at most,
// unless the ledger was made anew since.
const settlingIn = 24 * time.Hour

// knows reports whether the ledger has seen all of a period: a rebuilt
// one has only what the log still keeps.
func (o Organization) knows(period calendar.Period) bool {
	from := o.Plans[0].From
	if period.Start.After(from) {
		from = period.Start
	}
	return o.Opened.Sub(from) < settlingIn
}

// isClosed reports whether what was accepted at an instant can't
// be booked in its own period any more.
func (o Organization) isClosed(at time.Time) bool { return at.Before(o.ClosedThrough) }
