package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A GrantSource is what a grant is for. Its numbers are stored.
type GrantSource uint8

// The sources of grants.
const (
	FromBilling    GrantSource = 1 // added by a decision
	FromAdjustment GrantSource = 2 // credits a wrong charge
)

// A GrantStatus is the state of a grant. Its numbers are stored.
type GrantStatus uint8

// The statuses.
const (
	GrantScheduled GrantStatus = iota + 1 // it has not started
	GrantActive
	GrantExpired
	GrantVoided
)

// PlanPriority is the priority of a plan's allowance and the default of
// grants: lower ones are used first.
const (
	PlanPriority = 100
	MaxPriority  = 1000
)

// MaxGrants is the most scheduled or unused grants of an organization.
const MaxGrants = 100

// ExpiryNotice is how long before its expiry a grant is announced.
const ExpiryNotice = 7 * 24 * time.Hour

// ErrNoGrant is the error for an unknown grant.
var ErrNoGrant = errors.New("no such grant")

// A Grant is what an organization may use besides its plan. Amount is
// the sum of its bytes left, used, expired and voided.
type Grant struct {
	ID          string
	Amount      int64
	Remaining   int64
	Consumed    int64
	Expired     int64
	Voided      int64
	Priority    int
	Starts      time.Time
	Expires     time.Time // zero: never
	RolloverCap *int64    // most that outlives a period; nil: all
	Source      GrantSource
	Reason      string
	Created     time.Time
	Status      GrantStatus
	Announced   bool      // its coming expiry is published
	Ended       time.Time // when nothing was left; of a used up one the end of the period in which it was; zero before
	Ahead       []Ahead   // of one with a RolloverCap
	Decision    int64     // number of the one that made it
}

// An Ahead is what was used of a grant in a later period while an
// earlier one was open, at whose end it was still there.
type Ahead struct {
	Start time.Time // of the period
	Bytes int64
}

// addAhead adds bytes used in a period that begins at start.
func (g *Grant) addAhead(start time.Time, bytes int64) {
	for i := range g.Ahead {
		if g.Ahead[i].Start.Equal(start) {
			g.Ahead[i].Bytes += bytes
			return
		}
	}
	g.Ahead = append(g.Ahead, Ahead{start, bytes})
}

// excess returns the part beyond the grant's cap at the end of a period
// in which it was in force.
func (g *Grant) excess(period calendar.Period) int64 {
	if g.Status != GrantActive || g.RolloverCap == nil || !g.Starts.Before(period.End) || !g.Created.Before(period.End) {
		return 0
	}
	left := g.Remaining
	for _, ahead := range g.Ahead {
		left += ahead.Bytes
	}
	return min(g.Remaining, max(0, left-*g.RolloverCap))
}

// dropAhead drops the use ahead of a period that is now the earliest open one.
func (g *Grant) dropAhead(start time.Time) {
	g.Ahead = slices.DeleteFunc(g.Ahead, func(a Ahead) bool { return !a.Start.After(start) })
}

// live reports whether the grant can still change.
func (g *Grant) live() bool {
	return g.Status == GrantScheduled || g.Status == GrantActive && g.Remaining > 0
}

// covers reports whether the grant pays for logs accepted at an instant.
func (g *Grant) covers(at time.Time) bool {
	return g.Status == GrantActive && g.Remaining > 0 && !at.Before(g.Starts) && (g.Expires.IsZero() || at.Before(g.Expires))
}

// notice returns when to announce the coming expiry; zero: done or not needed.
func (g *Grant) notice() time.Time {
	if g.Announced || g.Expires.IsZero() || g.Status != GrantActive {
		return time.Time{}
	}
	return g.Expires.Add(-ExpiryNotice)
}

// before compares grants in order of use: by priority, expiry, age. The
// decision is the age of grants of one instant, as a test clock stands.
func (g *Grant) before(other *Grant) int {
	return cmp.Or(cmp.Compare(g.Priority, other.Priority), compareExpiry(g.Expires, other.Expires), g.Starts.Compare(other.Starts),
		cmp.Compare(g.Decision, other.Decision))
}

// compareExpiry orders what never expires last.
func compareExpiry(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// beforePlan reports whether a grant is used before the plan's
// allowance in a period that ends then. Of equals the plan is older.
func (g *Grant) beforePlan(end time.Time) bool {
	return cmp.Or(cmp.Compare(g.Priority, PlanPriority), compareExpiry(g.Expires, end)) < 0
}

// take books a move on the grant and returns by how much its rest grows.
func (g *Grant) take(m move) (grown int64) {
	switch {
	case m.to == Credit:
		g.Remaining += m.amount
		return m.amount
	case m.to == Consumed:
		g.Consumed += m.amount
	case m.to == Expired:
		g.Expired += m.amount
	case m.to == Voided:
		g.Voided += m.amount
	}
	g.Remaining -= m.amount
	return -m.amount
}

// end sets when nothing was left of the grant.
func (g *Grant) end(at time.Time) {
	if g.Remaining == 0 && g.Ended.IsZero() {
		g.Ended = at
	}
}

// burnOrder returns the grants that cover an instant, in order of use.
func burnOrder(grants []*Grant, at time.Time) (order []*Grant) {
	for _, g := range grants {
		if g.covers(at) {
			order = append(order, g)
		}
	}
	slices.SortFunc(order, (*Grant).before)
	return order
}

// inOrder is burnOrder with the plan's allowance, as nil, in its place.
func inOrder(grants []*Grant, at, end time.Time) []*Grant {
	order := burnOrder(grants, at)
	plan := slices.IndexFunc(order, func(g *Grant) bool { return !g.beforePlan(end) })
	if plan < 0 {
		plan = len(order)
	}
	return slices.Insert(order, plan, nil)
}

// A Fund covers use: a grant or the plan's allowance.
type Fund struct {
	Grant *Grant // nil: the plan's allowance
	Left  int64
}

// Funds returns what covers an instant in order of use, and then later
// grants by their start.
func (b Book) Funds(grants []Grant, at time.Time) (funds []Fund) {
	live := make([]*Grant, len(grants))
	for i := range grants {
		live[i] = &grants[i]
	}
	for _, g := range inOrder(live, at, b.Period.End) {
		if g == nil {
			funds = append(funds, Fund{Left: b.Balances[Allowance]})
			continue
		}
		funds = append(funds, Fund{g, g.Remaining})
	}
	slices.SortStableFunc(live, func(a, b *Grant) int { return a.Starts.Compare(b.Starts) })
	for _, g := range live {
		if g.Status == GrantScheduled {
			funds = append(funds, Fund{g, g.Amount})
		}
	}
	return funds
}

// CheckAgainst returns how a grant differs from the decision that made it;
// empty: not at all.
func (g Grant) CheckAgainst(made Decision, o Organization) string {
	var want Grant
	switch d := made.(type) {
	case Granted:
		want = d.Grant
	case Adjusted:
		want = Grant{
			ID: d.ID, Amount: d.Bytes, Starts: g.Created, Expires: o.PeriodAt(g.Created).End, Source: FromAdjustment, Reason: d.Reason, Created: g.Created,
		}
	default:
		return fmt.Sprintf("decision %d made no grant", g.Decision)
	}
	for _, compared := range []struct {
		what     string
		is, want any
	}{
		{"id", g.ID, want.ID}, {"amount", g.Amount, want.Amount}, {"priority", g.Priority, want.Priority}, {"source", g.Source, want.Source},
		{"start", g.Starts.UnixMicro(), want.Starts.UnixMicro()}, {"expiry", g.Expires.UnixMicro(), want.Expires.UnixMicro()},
		{"reason", g.Reason, want.Reason}, {"time", g.Created.UnixMicro(), want.Created.UnixMicro()},
		{"rollover cap", capOf(g), capOf(want)},
	} {
		if compared.is != compared.want {
			return fmt.Sprintf("its %s is %v, by decision %d it is %v", compared.what, compared.is, g.Decision, compared.want)
		}
	}
	return ""
}

// capOf returns a grant's rollover cap; -1: it has none.
func capOf(g Grant) int64 {
	if g.RolloverCap == nil {
		return -1
	}
	return *g.RolloverCap
}

// Check returns how a grant contradicts itself at an instant; empty: not
// at all.
func (g Grant) Check(at time.Time) string {
	gone, ended := g.Consumed+g.Expired+g.Voided, !g.Ended.IsZero()
	switch {
	case g.Status == GrantScheduled && (g.Remaining+gone != 0 || ended):
		return "it has not started, and was used"
	case g.Status != GrantScheduled && ended != (g.Remaining == 0):
		return fmt.Sprintf("%d bytes are left of it, and it ended at %s", g.Remaining, g.Ended)
	case g.Status == GrantActive && (g.Voided > 0 || g.Expired > 0 && g.RolloverCap == nil):
		return "it is in force, and was taken back or has expired"
	case g.Status == GrantActive && ended && g.Starts.After(g.Ended):
		return fmt.Sprintf("it started at %s, and ended at %s", g.Starts, g.Ended)
	case g.Status == GrantExpired && (g.Expired == 0 || g.Voided > 0 || !g.Ended.Equal(g.Expires)):
		return "it has expired, and not at its expiry"
	case g.Status == GrantVoided && g.Voided == 0:
		return "it is voided, and nothing of it"
	case g.Announced && g.live() && g.Source == FromBilling && g.Expires.Sub(g.Starts) > ExpiryNotice && at.Before(g.Expires.Add(-ExpiryNotice)):
		return "its expiry is announced too early"
	}
	return ""
}
