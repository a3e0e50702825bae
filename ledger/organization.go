package ledger

import (
	"errors"
	"fmt"
	"slices"
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

// firstSeen is an instant of the first period with an allowance: that
// of the first plan or, in a rebuilt ledger, the period then running.
func (o Organization) firstSeen(first Plan) time.Time {
	if o.sawWhole(o.PeriodAt(first.From)) {
		return first.From
	}
	return o.Opened
}

// isClosed reports whether logs accepted at an instant can no longer be
// booked in their own period.
func (o Organization) isClosed(at time.Time) bool { return at.Before(o.ClosedThrough) }

// An Anchor is the day of the month on which periods begin, from the
// end of a period on.
type Anchor struct {
	From time.Time
	Day  int // 1..31
}

// An Anchoring holds when an organization's periods begin.
type Anchoring struct {
	AnchorDay int      // the first, 1..31
	Anchors   []Anchor // later ones, by time
}

// maxAnchors bounds a timeline: older periods are long closed.
const maxAnchors = 100

// PeriodAt returns the organization's period of an instant. The first
// period after a change of the anchor day is shortened to start at the
// end of the last.
func (d Anchoring) PeriodAt(t time.Time) calendar.Period {
	period := calendar.PeriodAt(t, d.AnchorDay)
	for _, anchor := range d.Anchors {
		if t.Before(anchor.From) {
			break
		}
		if period = calendar.PeriodAt(t, anchor.Day); period.Start.Before(anchor.From) {
			period.Start = anchor.From
		}
	}
	return period
}

// AnchorDayAt returns the anchor day in force at an instant.
func (d Anchoring) AnchorDayAt(t time.Time) int {
	day := d.AnchorDay
	for _, anchor := range d.Anchors {
		if !t.Before(anchor.From) {
			day = anchor.Day
		}
	}
	return day
}

// whole returns the length of the full period of a part.
func (d Anchoring) whole(part calendar.Period) time.Duration {
	whole := calendar.PeriodAt(part.End.Add(-instant), d.AnchorDayAt(part.Start))
	return whole.End.Sub(whole.Start)
}

// share returns a period's quota: whole, or for a shortened period its
// part, rounded up to a byte.
func (d Anchoring) share(quota int64, of calendar.Period) int64 {
	return mulDivUp(quota, int64(of.End.Sub(of.Start)), int64(d.whole(of)))
}

// AnchorSet sets the anchor day from the end of the running period on.
type AnchorSet struct{ Anchor Anchor }

func (d AnchorSet) decide(b *Books, cause Cause) error {
	anchors := slices.DeleteFunc(slices.Clone(b.Organization.Anchors), func(a Anchor) bool { return a.From.After(cause.At) })
	if anchors = append(anchors, d.Anchor); len(anchors) > maxAnchors {
		b.Organization.AnchorDay, anchors = anchors[0].Day, anchors[1:]
	}
	b.Organization.Anchors = anchors
	return nil
}

// changeAnchor decides an anchor day; nothing if it is unchanged.
func (d Anchoring) changeAnchor(day int, at time.Time) ([]Decision, error) {
	if day < 1 || day > 31 {
		return nil, Invalid{"anchor_day", fmt.Sprintf("The anchor day is %d.", day), "Use a day of the month, 1 to 31: shorter months have their last day instead."}
	}
	end := d.PeriodAt(at).End
	if d.AnchorDayAt(end) == day {
		return nil, nil
	}
	return []Decision{AnchorSet{Anchor{From: end, Day: day}}}, nil
}

// NoProject is the error for a project of another organization.
type NoProject struct{ Project string }

func (e NoProject) Error() string {
	return fmt.Sprintf("the organization has no project %q", e.Project)
}

// Owns reports whether an organization owns a project.
type Owns func(organization, project string) bool

// Check returns NoProject for another's project; an empty one is allowed.
func (o Owns) Check(organization, project string) error {
	if project != "" && !o(organization, project) {
		return NoProject{Project: project}
	}
	return nil
}

// An AccountState is what other services need of an organization's books.
type AccountState struct {
	Organization      Organization
	Book              Book // of the latest period
	Tier              Tier
	State             string
	RequestsPerMinute int
	RetentionDays     int      // of new logs
	Overage           int64    // most overage of a period
	NextQuota         int64    // of the next period's plan, without grants
	NextOverage       int64    // in that period
	Version           int64    // grows with every change
	Budgets           []Budget // as they are in Book's period
}

// NewAccountState returns the state of an organization at an instant.
func NewAccountState(o Organization, book Book, budgets []Budget, version int64, at time.Time) AccountState {
	at = o.Now(at)
	plan, next := o.Plans.At(at), o.Plans.At(book.Period.End)
	terms := plan.Terms()
	state := AccountState{
		Organization: o, Book: book, Tier: plan.Tier, State: o.State(book, at), RequestsPerMinute: terms.RequestsPerMinute,
		RetentionDays: terms.RetentionDays, Overage: plan.overageAllowed(),
		NextQuota: o.share(next.Terms().Quota, o.PeriodAt(book.Period.End)), NextOverage: next.overageAllowed(), Version: version,
	}
	if o.IsTest() {
		state.State = Suspended // none is accepted
	}
	for _, budget := range budgets {
		state.Budgets = append(state.Budgets, budget.In(book.Period.Start))
	}
	return state
}
