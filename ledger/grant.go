package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

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

// event returns an event about the grant.
func (g *Grant) event(kind EventKind, organization string, cause Cause) Event {
	return Event{Kind: kind, Organization: organization, Cause: cause, Grant: *g}
}

// Grants are those of an organization that can still change, opened to write to.
type Grants []*Grant

// burnOrder returns the grants that cover an instant, in order of use.
func (g Grants) burnOrder(at time.Time) (order Grants) {
	for _, grant := range g {
		if grant.covers(at) {
			order = append(order, grant)
		}
	}
	slices.SortFunc(order, (*Grant).before)
	return order
}

// inOrder is burnOrder with the plan's allowance, as nil, in its place.
func (g Grants) inOrder(at, end time.Time) Grants {
	order := g.burnOrder(at)
	plan := slices.IndexFunc(order, func(g *Grant) bool { return !g.beforePlan(end) })
	if plan < 0 {
		plan = len(order)
	}
	return slices.Insert(order, plan, nil)
}

// MaxReason is the longest reason, in characters.
const MaxReason = 500

func (g Grant) validate(at time.Time) error {
	switch {
	case g.Amount < 1 || g.Amount > MaxGrant:
		return Invalid{"amount", fmt.Sprintf("The amount is %d bytes.", g.Amount), fmt.Sprintf("Use a whole number from 1 to %d.", MaxGrant)}
	case g.Priority < 0 || g.Priority > MaxPriority:
		return Invalid{"priority", fmt.Sprintf("The priority is %d.", g.Priority),
			fmt.Sprintf("Use a whole number from 0, which is used first, to %d. The plan has %d.", MaxPriority, PlanPriority)}
	case g.Starts.Year() < FirstYear || g.Starts.Year() > LastYear:
		return Invalid{"starts_at", fmt.Sprintf("starts_at is %s.", g.Starts.Format(time.RFC3339)),
			fmt.Sprintf("Use a time of the years %d to %d.", FirstYear, LastYear)}
	case !g.Expires.IsZero() && (!g.Expires.After(g.Starts) || !g.Expires.After(at) || g.Expires.Year() > LastYear):
		return Invalid{"expires_at", fmt.Sprintf("expires_at is %s.", g.Expires.Format(time.RFC3339)),
			fmt.Sprintf("Use a time behind starts_at and now, until the year %d, or leave it out.", LastYear)}
	case g.RolloverCap != nil && (*g.RolloverCap < 0 || *g.RolloverCap > g.Amount):
		return Invalid{"rollover_cap", fmt.Sprintf("The rollover cap is %d bytes.", *g.RolloverCap), "Use a whole number from 0 to the amount, or leave it out."}
	}
	return validateReason(g.Reason)
}

func validateReason(reason string) error {
	for _, r := range reason {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return Invalid{"reason", fmt.Sprintf("The reason has the character %q.", r), "Use text without control characters."}
		}
	}
	if utf8.RuneCountInString(reason) > MaxReason {
		return Invalid{"reason", fmt.Sprintf("The reason has %d characters.", utf8.RuneCountInString(reason)), fmt.Sprintf("Use at most %d.", MaxReason)}
	}
	return nil
}

// find finds a live grant; nil where there is none.
func (g Grants) find(id string) *Grant {
	for _, grant := range g {
		if grant.ID == id && grant.live() {
			return grant
		}
	}
	return nil
}

// cover splits bytes between the allowance and the grants, in order of
// use, and returns how many are left.
func (g Grants) cover(book *Book, bytes int64, at time.Time, reason Reason) (moves []move, left int64) {
	moves, left = make([]move, 0, 3), bytes
	for _, grant := range g.inOrder(at, book.Period.End) {
		from, covered := Allowance, min(left, book.Balances[Allowance])
		if grant != nil {
			from, covered = Credit, min(left, grant.Remaining)
		}
		moves, left = append(moves, move{from: from, to: Consumed, amount: covered, reason: reason, grant: grant}), left-covered
	}
	return moves, left
}

// lapses are the moves that expire at the end of a period.
func (g Grants) lapses(book *Book) []move {
	lapses := []move{{from: Allowance, to: Expired, amount: book.Balances[Allowance], reason: Lapsed}}
	for _, grant := range g {
		lapses = append(lapses, move{from: Credit, to: Expired, amount: grant.excess(book.Period), reason: Lapsed, grant: grant})
		grant.dropAhead(book.Period.End)
	}
	return lapses
}

// Add decides a grant. It reads only the fields of spec that a request sets.
func (g Grants) Add(spec Grant, id string, at time.Time) (Decision, error) {
	if spec.Starts.IsZero() {
		spec.Starts = at
	}
	if err := spec.validate(at); err != nil {
		return nil, err
	}
	if err := g.room(spec.Amount); err != nil {
		return nil, err
	}
	return Granted{Grant: Grant{
		ID: id, Amount: spec.Amount, Priority: spec.Priority, Starts: spec.Starts, Expires: spec.Expires, RolloverCap: spec.RolloverCap,
		Source: FromBilling, Reason: spec.Reason, Created: at,
	}}, nil
}

// Void decides to take back what is left of a grant; nothing if none is.
// What an adjustment gave back is no grant.
func (g Grants) Void(grant Grant) ([]Decision, error) {
	switch {
	case grant.Source == FromAdjustment:
		return nil, Invalid{"", fmt.Sprintf("%s is an adjustment, which can't be voided.", grant.ID), "Make an adjustment of as many bytes below zero."}
	case g.find(grant.ID) == nil:
		return nil, nil
	}
	return []Decision{Revoked{Grant: grant.ID}}, nil
}

// room refuses a grant beyond the organization's limits.
func (g Grants) room(amount int64) error {
	live, all := 0, amount
	for _, grant := range g {
		if grant.live() {
			live++
			all += max(grant.Remaining, grant.Amount-grant.Consumed-grant.Expired-grant.Voided)
		}
	}
	switch {
	case live >= MaxGrants:
		return tooManyGrants
	case all > MaxGrant:
		return Invalid{"amount", fmt.Sprintf("With it the organization would have %d bytes of grants.", all),
			fmt.Sprintf("Use an amount with which they are at most %d.", MaxGrant)}
	}
	return nil
}

// A Fund covers use: a grant or the plan's allowance.
type Fund struct {
	Grant *Grant // nil: the plan's allowance
	Left  int64
}

// Funds returns what covers an instant in order of use, and then later
// grants by their start.
func (b Book) Funds(grants []Grant, at time.Time) (funds []Fund) {
	live := make(Grants, len(grants))
	for i := range grants {
		live[i] = &grants[i]
	}
	for _, g := range live.inOrder(at, b.Period.End) {
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
