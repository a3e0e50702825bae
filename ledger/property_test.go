package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// historySteps is the number of steps of a history.
const historySteps = 80

// Random histories: books, grants and facts equal the model's, and each
// transfer and fact is there once.
func TestBooksAreTheModel(t *testing.T) {
	random := testenv.Random(t, 1)
	for range testenv.Rounds(t, 250, 12_500) {
		h := newHistory(t, random)
		for range historySteps {
			h.step()
		}
		h.compare()
	}
}

// A history is an organization with its stored books and all its acts.
type history struct {
	t            testing.TB
	random       *rand.Rand
	now          time.Time
	acts         []act
	tiers        Tiers
	anchor       int
	organization Organization
	books        map[time.Time]Book
	grants       map[string]Grant
	budgets      []Budget // in the order of their beginning
	transfers    []Transfer
	events       []Event
	lines        map[Line]int64
}

func newHistory(t testing.TB, random *rand.Rand) *history {
	anchor := []int{1, 15, 31}[random.IntN(3)]
	now := time.Date(2027, 12, 1+random.IntN(60), random.IntN(24), 0, 0, 0, time.UTC)
	return &history{
		t: t, random: random, now: now, anchor: anchor, tiers: smallTiers(), organization: Organization{ID: "acme", Anchoring: Anchoring{AnchorDay: anchor}}, books: map[time.Time]Book{},
		grants: map[string]Grant{},
		lines:  map[Line]int64{},
	}
}

// step lets time pass, performs an act, and sometimes compares.
func (h *history) step() {
	h.pass()
	a := h.choose()
	a.tiers = h.tiers
	if a.id == "" {
		a.id = fmt.Sprintf("act%03d", len(h.acts))
	}
	h.acts = append(h.acts, a)
	if err := h.perform(a); err != nil {
		h.fail("%v", err)
	}
	if h.random.IntN(8) == 0 {
		h.compare()
	}
}

// pass lets time pass, often to the start or end of something.
func (h *history) pass() {
	switch n := h.random.IntN(20); {
	case n < 9:
		h.now = h.now.Add(time.Duration(h.random.IntN(120)) * time.Second)
	case n < 15:
		h.now = h.now.Add(time.Duration(h.random.IntN(48)) * time.Hour)
	case n < 18:
		h.now = h.now.AddDate(0, 0, h.random.IntN(15))
	default:
		off := []time.Duration{-instant, 0, instant, 30 * time.Second}[h.random.IntN(4)]
		h.now = h.organization.PeriodAt(h.now).End.Add(off)
	}
}

func (h *history) choose() act {
	if h.organization.Provisional() {
		if h.random.IntN(4) == 0 {
			return act{kind: actCharge, at: h.now, bytes: h.random.Int64N(120), by: h.sender()}
		}
		return act{kind: actPlan, at: h.now, plan: Plan{From: h.now, Tier: Indie}}
	}
	switch n := h.random.IntN(100); {
	case n < 40:
		return act{kind: actCharge, at: h.accepted(), bytes: h.random.Int64N(80), by: h.sender()}
	case n < 62:
		return act{kind: actAdvance, at: h.now.Add(-time.Minute)}
	case n < 74:
		return h.subscription()
	case n < 75:
		return act{kind: actAnchor, at: h.now, bytes: []int64{1, 15, 28, 29, 31}[h.random.IntN(5)]}
	case n < 77:
		return act{kind: actSuspend, at: h.now, suspended: !h.organization.Suspended}
	case n < 88:
		return h.wish()
	case n < 92:
		return h.revocation()
	case n < 95:
		return h.budgeting()
	case n < 96:
		return h.refusing()
	case n < 97:
		return h.announcing()
	case n < 98:
		return h.retermed()
	}
	return h.adjustment()
}

// retermed changes what tiers allow, or repeats what they do.
func (h *history) retermed() act {
	h.tiers = Tiers{
		Indie: {Quota: []int64{50, 100, 100, 150}[h.random.IntN(4)], RequestsPerMinute: 60},
		Scale: {Quota: []int64{300, 400, 500}[h.random.IntN(3)], RequestsPerMinute: 1800},
	}
	return act{kind: actTerms, at: h.now}
}

// accepted returns when a charge was accepted, mostly just now.
func (h *history) accepted() time.Time {
	back := time.Duration(h.random.IntN(70)) * time.Second
	if h.random.IntN(6) == 0 {
		back = time.Duration(h.random.IntN(40*24)) * time.Hour
	}
	at := h.now.Add(-back)
	if first := h.organization.Plans[0].From; at.Before(first) {
		return first
	}
	return at
}

func (h *history) subscription() act {
	plan := Plan{Tier: []Tier{Indie, Scale}[h.random.IntN(2)], Overage: h.random.IntN(2) == 0}
	if h.random.IntN(2) == 0 {
		plan.Quota = 1 + h.random.Int64N(500)
	}
	if plan.Overage && h.random.IntN(2) == 0 {
		plan.OverageCap = 1 + h.random.Int64N(100)
	}
	if h.random.IntN(4) == 0 { // the current plan: cancels the scheduled one
		plan = h.organization.Plans.At(h.now)
		plan.From = time.Time{}
	}
	return act{kind: actSubscribe, at: h.now, plan: plan, effective: []string{"", "", PeriodEnd}[h.random.IntN(3)]}
}

func (h *history) wish() act {
	amount := 1 + h.random.Int64N(200)
	g := Grant{Amount: amount, Priority: []int{0, 50, PlanPriority, PlanPriority, 200}[h.random.IntN(5)], Starts: h.now}
	switch h.random.IntN(4) {
	case 0:
		g.Starts = h.now.Add(-time.Duration(h.random.IntN(240)) * time.Hour)
	case 1:
		g.Starts = h.now.Add(time.Duration(h.random.IntN(480)) * time.Hour)
	}
	late := h.now
	if g.Starts.After(late) {
		late = g.Starts
	}
	switch h.random.IntN(3) {
	case 0:
		g.Expires = late.Add(time.Duration(1+h.random.IntN(40*24)) * time.Hour)
	case 1:
		g.Expires = h.organization.PeriodAt(late).End
	}
	if h.random.IntN(2) == 0 {
		carried := h.random.Int64N(amount + 1)
		g.RolloverCap = &carried
	}
	return act{kind: actGrant, at: h.now, grant: g}
}

// revocation voids a grant, where there is one. Adjustments can't be.
func (h *history) revocation() act {
	ids := make([]string, 0, len(h.grants))
	for id, g := range h.grants {
		if g.Source == FromBilling {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return h.adjustment()
	}
	slices.Sort(ids)
	id := ids[h.random.IntN(len(ids))]
	return act{kind: actVoid, at: h.now, id: id, grant: h.grants[id]}
}

func (h *history) adjustment() act {
	a := act{kind: actAdjust, at: h.now, bytes: 1 + h.random.Int64N(100)}
	if h.random.IntN(2) == 0 {
		a.bytes = -a.bytes
	}
	if h.random.IntN(2) == 0 {
		a.of = h.accepted()
	}
	return a
}

// perform applies an act like the service: it opens only what it needs.
func (h *history) perform(a act) error {
	books := h.open(a)
	if err := do(books, a, h.now); err != nil {
		return err
	}
	h.organization = books.Organization
	for _, book := range books.All() {
		book.Pool = 0
		h.books[book.Period.Start] = book
	}
	for _, g := range books.Grants {
		h.grants[g.ID] = *g
	}
	h.budgets = nil // all were opened
	for _, b := range books.Budgets.Kept {
		h.budgets = append(h.budgets, *b)
	}
	h.transfers, h.events = append(h.transfers, books.Transfers...), append(h.events, books.Events...)
	h.state(books)
	return nil
}

func (h *history) open(a act) *Books {
	var books []Book
	charged := h.organization.BookedIn(a.at).Start
	for start, book := range h.books {
		isOpen := book.Period.End.After(h.organization.ClosedThrough)
		if a.kind == actPlan || a.kind == actCharge && start.Equal(charged) || (a.kind != actCharge || h.organization.Pool > 0) && isOpen {
			books = append(books, book)
		}
	}
	var grants []Grant
	for _, g := range h.grants {
		if g.live() && (a.kind != actCharge || h.organization.Pool > 0) {
			grants = append(grants, g)
		}
	}
	slices.SortFunc(grants, func(x, y Grant) int { return strings.Compare(x.ID, y.ID) })
	return OpenBooks(h.organization, grants, books...).WithBudgets(h.budgets)
}

func do(b *Books, a act, now time.Time) error {
	var decisions []Decision
	var err error
	switch a.kind {
	case actCharge:
		return b.Charge(Charge{Organization: "acme", Bytes: a.bytes, Entries: 1, Cause: Cause{Event: a.id, At: a.at, Project: a.by.Project, Key: a.by.Key}})
	case actPlan:
		decisions, err = a.rules().Start(b.Organization, a.plan)
	case actSubscribe:
		decisions, err = a.rules().Subscribe(b.Organization, Subscription{Plan: a.plan, Effective: a.effective}, a.at)
	case actSuspend:
		decisions = []Decision{SuspensionChanged{a.suspended}}
	case actGrant:
		decisions, err = decided(b.Grants.Add(a.grant, a.id, a.at))
	case actAnchor:
		decisions, err = b.Organization.changeAnchor(int(a.bytes), a.at)
	case actVoid:
		decisions, err = b.Grants.Void(a.grant)
	case actAdjust:
		decisions, err = decided(b.Adjust(a.bytes, "", a.id, a.of, a.at))
	case actAdvance:
		decisions = []Decision{Advanced{Through: a.at}}
	case actTerms:
		decisions, err = a.rules().Follow(b.Organization, a.at)
	case actThresholds:
		decisions, err = Thresholds(a.percents).DecideFor(b.Organization)
	case actBudget:
		decisions, err = b.Budgets.Set(BudgetSpec{a.by, a.bytes}, a.used)
	case actUnbudget:
		decisions, err = b.Budgets.Remove(a.by)
	case actRefuse:
		return b.Refuse(&Refusal{Spender: a.by, Quota: a.bytes, PeriodStart: b.Organization.PeriodAt(a.at).Start, Exhausts: true, Cause: Cause{Event: a.id, At: a.at}})
	}
	for _, decision := range decisions {
		if err == nil {
			err = b.Decide(decision, b.DecisionCause(now))
		}
	}
	return err
}

func decided(d Decision, err error) ([]Decision, error) { return []Decision{d}, err }

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	lines := make([]string, len(h.acts))
	for i, a := range h.acts {
		lines[i] = a.String()
	}
	h.t.Fatalf(format+"\nanchor day %d\n%s", append(args, h.organization.AnchorDay, strings.Join(lines, "\n"))...)
}

// compare compares everything.
func (h *history) compare() {
	h.t.Helper()
	m := remember(h.anchor, h.acts)
	h.compareBooks(m)
	h.compareGrants(m)
	h.compareBudgets(m)
	h.compareFacts(m)
	h.compareStates(m)
}

func (h *history) compareBooks(m *model) {
	h.t.Helper()
	if len(h.books) != len(m.opened) {
		h.fail("%d books, the model has %d", len(h.books), len(m.opened))
	}
	moved, lines := map[time.Time]*Balances{}, map[string]bool{}
	for _, transfer := range h.transfers {
		start, line := transfer.Period.Start, fmt.Sprintf("%d/%s/%d/%d", transfer.Cause.Source, transfer.Cause.Event, transfer.Cause.Offset, transfer.Line)
		if moved[start] == nil {
			moved[start] = &Balances{}
		}
		moved[start].Apply(transfer)
		if lines[line] || transfer.Amount < 1 {
			h.fail("transfer %+v", transfer)
		}
		lines[line] = true
	}
	for _, period := range m.opened {
		book, want := h.books[period], m.balances(period)
		if book.Balances != want || book.Balances.Sum() != 0 || moved[period] == nil && want != (Balances{}) || moved[period] != nil && *moved[period] != want {
			h.fail("period %s\n  holds %v\n  moved %v\n  model %v", day(period), book.Balances, moved[period], want)
		}
	}
}

func (h *history) compareGrants(m *model) {
	h.t.Helper()
	var pool int64
	for _, heap := range m.heaps {
		if heap.id == "" {
			continue
		}
		g, want := h.grants[heap.id], map[string]int64{}
		for _, n := range m.notes {
			if n.heap == heap {
				want[n.what] += n.bytes
			}
		}
		if heap.begun {
			pool += heap.left
		} else if heap.ended {
			want["voided"] = heap.amount
		}
		if g.Remaining != heap.left || g.Consumed != want["used"] || g.Expired != want["lapsed"] || g.Voided != want["voided"] {
			h.fail("grant %+v\n  model %d left, %v", g, heap.left, want)
		}
	}
	if h.organization.Pool != pool {
		h.fail("a pool of %d, of the model %d", h.organization.Pool, pool)
	}
}

func (h *history) compareFacts(m *model) {
	h.t.Helper()
	ids := map[string]bool{}
	facts := make([]string, len(h.events))
	for i, event := range h.events {
		if ids[event.ID()] {
			h.fail("fact %s is there twice", event.ID())
		}
		ids[event.ID()], facts[i] = true, factOf(event)
	}
	for i := range max(len(facts), len(m.facts)) {
		if i >= len(facts) || i >= len(m.facts) || facts[i] != m.facts[i] {
			h.fail("fact %d: have\n  %s\nmodel\n  %s", i, strings.Join(facts[min(i, len(facts)):], "\n  "), strings.Join(m.facts[min(i, len(m.facts)):], "\n  "))
		}
	}
}

func factOf(e Event) string {
	period := day(e.Book.Period.Start)
	switch e.Kind {
	case ThresholdReached:
		return fmt.Sprintf("%s %d%%", period, e.Percent)
	case QuotaExhausted:
		return period + " exhausted"
	case QuotaRestored:
		return period + " restored"
	case OverageBegun:
		return period + " overage"
	case TierChanged:
		return fmt.Sprintf("%s %s>%s", period, e.Before, e.After)
	case GrantExpiring:
		return e.Grant.ID + " expiring"
	case GrantHasExpired:
		return e.Grant.ID + " expired"
	case PeriodClosed:
		return period + " closed"
	case StatementReady:
		return period + " statement"
	case BudgetThresholdReached, BudgetExhausted, BudgetRestored:
		return budgetFactOf(e)
	}
	of := "none"
	if !e.Of.IsZero() {
		of = day(e.Of)
	}
	return fmt.Sprintf("%s adjusted by %d for %s of %s", period, e.Amount, e.Subject, of)
}

// compareStates compares the running period, if there is one.
func (h *history) compareStates(m *model) {
	h.t.Helper()
	period := m.period(h.now)
	book, ok := h.books[period]
	if !ok || m.first == nil {
		return
	}
	book.Pool = h.organization.Pool
	want := Active
	switch {
	case m.suspended:
		want = Suspended
	case m.isRefused(period, h.now), m.isUsedUp(period, h.now):
		want = Exhausted
	}
	if state := h.organization.State(book, h.now); state != want {
		h.fail("state %s, of the model %s", state, want)
	}
}
