package ledger

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// An act is one thing that happened to an organization.
type act struct {
	kind      actKind
	at        time.Time // when it was decided or accepted; of an advance: through when
	id        string
	bytes     int64
	plan      Plan
	effective string
	grant     Grant
	suspended bool
	of        time.Time
	by        Spender // who sent it, or whose budget it is
	used      int64   // of a budget, when it was set
}

type actKind int

const (
	actCharge actKind = iota
	actPlan           // the first
	actSubscribe
	actSuspend
	actGrant
	actVoid
	actAdjust
	actAdvance
	actBudget
	actUnbudget
	actRefuse
)

func (a act) String() string {
	name := [...]string{"charge", "plan", "subscribe", "suspend", "grant", "void", "adjust", "advance", "budget", "unbudget", "refuse"}[a.kind]
	text := fmt.Sprintf("%s %s at %s", name, a.id, a.at.Format(time.RFC3339Nano))
	switch a.kind {
	case actPlan, actSubscribe:
		text += fmt.Sprintf(" %+v %s", a.plan, a.effective)
	case actGrant:
		text += fmt.Sprintf(" %+v", a.grant)
	case actSuspend:
		text += fmt.Sprint(" ", a.suspended)
	case actCharge, actAdjust, actBudget, actUnbudget, actRefuse:
		text += fmt.Sprint(" ", a.bytes, " ", a.by)
	}
	return text
}

// A model is the rules of the books once more, in the plainest way: heaps of bytes, and notes of what became of them. It has no balances:
// each question is answered by adding up notes. Books and model share no code but the calendar.
type model struct {
	anchor    int
	tiers     Tiers
	first     *Plan
	changes   []change
	closed    time.Time
	heaps     []*heap
	notes     []note
	opened    []time.Time
	reached   map[time.Time]int
	facts     []string
	suspended bool
	purses    []*purse
	seen      []act // charges
}

// A change of plans is one that was decided at an instant; without a plan it drops what was scheduled.
type change struct {
	decided time.Time
	plan    *Plan
}

// A heap is bytes under one name.
type heap struct {
	id                   string    // of the grant; empty: a plan's
	period               time.Time // of a plan's
	priority             int
	from, until, created time.Time
	carried              *int64
	amount, left         int64
	begun, ended, warned bool
}

type note struct {
	period time.Time
	what   string
	heap   *heap // nil: no grant's
	bytes  int64
}

// remember makes a model of a history.
func remember(anchor int, tiers Tiers, history []act) *model {
	m := &model{anchor: anchor, tiers: tiers, reached: map[time.Time]int{}}
	for _, a := range history {
		switch a.kind {
		case actCharge:
			m.charge(a)
			m.spend(a)
		case actPlan:
			m.begin(a)
		case actSubscribe:
			m.subscribe(a)
		case actSuspend:
			m.suspended = a.suspended
		case actGrant:
			m.give(a)
		case actVoid:
			m.void(a)
		case actAdjust:
			m.adjust(a)
		case actAdvance:
			m.advance(a.at)
		case actBudget:
			m.setBudget(a)
		case actUnbudget:
			m.dropBudget(a)
		case actRefuse:
			m.refuse(a)
		}
	}
	return m
}

func (m *model) period(at time.Time) time.Time { return calendar.PeriodAt(at, m.anchor).Start }
func (m *model) end(period time.Time) time.Time {
	return calendar.PeriodAt(period, m.anchor).End
}

func (m *model) total(period time.Time, what string, of func(*heap) bool) (total int64) {
	for _, n := range m.notes {
		if n.period.Equal(period) && n.what == what && of(n.heap) {
			total += n.bytes
		}
	}
	return total
}

func anyHeap(*heap) bool   { return true }
func isGrant(h *heap) bool { return h != nil && h.id != "" }
func isPlans(h *heap) bool { return h != nil && h.id == "" }

func (m *model) owed(period time.Time) int64 {
	return m.total(period, "owed", anyHeap) - m.total(period, "paid", anyHeap)
}

// left is what may be used in a period.
func (m *model) left(period time.Time) (left int64) {
	for _, h := range m.heaps {
		if h.begun && (h.id != "" || h.period.Equal(period)) {
			left += h.left
		}
	}
	return left
}

// balances are what the accounts of a period should hold.
func (m *model) balances(period time.Time) (b Balances) {
	gone := func(of func(*heap) bool) int64 {
		return m.total(period, "used", of) + m.total(period, "lapsed", of) + m.total(period, "voided", of)
	}
	b[Allowance] = m.total(period, "given", isPlans) - gone(isPlans)
	b[Credit] = m.total(period, "given", isGrant) - gone(isGrant)
	b[Consumed] = m.total(period, "used", anyHeap)
	b[Overage] = m.owed(period)
	b[Expired] = m.total(period, "lapsed", anyHeap)
	b[Voided] = m.total(period, "voided", anyHeap)
	b[Issuer] = -m.total(period, "given", anyHeap) - b[Overage]
	return b
}

func (m *model) quota(p Plan) int64 {
	if p.Quota > 0 {
		return p.Quota
	}
	return m.tiers[p.Tier].Quota
}

// inForce is the plan at an instant: the last that was decided for it, and not dropped before it began.
func (m *model) inForce(at time.Time) Plan {
	plan := *m.first
	for i, c := range m.changes {
		if c.plan != nil && !c.plan.From.After(at) && !m.dropped(i) {
			plan = *c.plan
		}
	}
	return plan
}

func (m *model) dropped(i int) bool {
	return slices.ContainsFunc(m.changes[i+1:], func(later change) bool { return m.changes[i].plan.From.After(later.decided) })
}

func (m *model) scheduled(at time.Time) *Plan {
	for i, c := range m.changes {
		if c.plan != nil && c.plan.From.After(at) && !m.dropped(i) {
			return c.plan
		}
	}
	return nil
}

// isOut reports whether a period has nothing left, and may have no more overage.
func (m *model) isOut(period, at time.Time) bool {
	if m.first == nil || m.left(period) > 0 || m.total(period, "used", anyHeap) == 0 {
		return false
	}
	plan := m.inForce(m.within(period, at))
	switch {
	case !plan.Overage:
		return true
	case plan.OverageCap == 0:
		return false
	}
	return m.owed(period) >= plan.OverageCap
}

func (m *model) within(period, at time.Time) time.Time {
	if at.Before(period) {
		return period
	}
	return at
}

func (m *model) fact(format string, args ...any) {
	m.facts = append(m.facts, fmt.Sprintf(format, args...))
}

func day(period time.Time) string { return period.Format(time.DateOnly) }

// watch states the facts that a change of a period makes true.
func (m *model) watch(period, at time.Time, change func()) {
	wasOut, owed := m.isOut(period, at), m.owed(period)
	change()
	used, all := m.total(period, "used", anyHeap), m.total(period, "used", anyHeap)+m.left(period)
	for _, percent := range []int{50, 80, 100} {
		if all > 0 && (used+m.owed(period))*100 >= all*int64(percent) && m.reached[period] < percent {
			m.reached[period] = percent
			m.fact("%s %d%%", day(period), percent)
		}
	}
	if m.first != nil && owed == 0 && m.owed(period) > 0 && m.inForce(m.within(period, at)).Overage {
		m.fact("%s overage", day(period))
	}
	switch isOut := m.isOut(period, at); {
	case isOut && !wasOut:
		m.fact("%s exhausted", day(period))
	case wasOut && !isOut:
		m.fact("%s restored", day(period))
	}
}

// open has a period begin, with what its plan allows.
func (m *model) open(at time.Time) time.Time {
	period := m.period(at)
	if !slices.ContainsFunc(m.opened, period.Equal) {
		m.opened = append(m.opened, period)
		m.allow(period)
	}
	return period
}

func (m *model) allow(period time.Time) {
	if m.first != nil {
		quota := m.quota(m.inForce(period))
		m.watch(period, period, func() { m.add(m.planHeap(period), period, quota) })
	}
}

func (m *model) planHeap(period time.Time) *heap {
	for _, h := range m.heaps {
		if h.id == "" && h.period.Equal(period) {
			return h
		}
	}
	h := &heap{period: period, priority: 100, from: period, until: m.end(period), begun: true}
	m.heaps = append(m.heaps, h)
	return h
}

// add puts bytes on a heap, which pay first for what is owed.
func (m *model) add(h *heap, period time.Time, bytes int64) {
	h.left += bytes
	m.note(period, "given", h, bytes)
	if paid := min(m.owed(period), bytes); paid > 0 {
		m.note(period, "paid", nil, paid)
		m.take(h, period, "used", paid)
	}
}

func (m *model) take(h *heap, period time.Time, what string, bytes int64) {
	h.left -= bytes
	m.note(period, what, h, bytes)
}

func (m *model) note(period time.Time, what string, h *heap, bytes int64) {
	m.notes = append(m.notes, note{period, what, h, bytes})
}

// use takes bytes from whichever heap is next, and owes what none has.
func (m *model) use(period, at time.Time, bytes int64) {
	for bytes > 0 {
		var next *heap
		for _, h := range m.heaps {
			if h.pays(period, at) && (next == nil || h.sooner(next)) {
				next = h
			}
		}
		if next == nil {
			m.note(period, "owed", nil, bytes)
			return
		}
		taken := min(bytes, next.left)
		m.take(next, period, "used", taken)
		bytes -= taken
	}
}

func (h *heap) pays(period, at time.Time) bool {
	switch {
	case h.left == 0 || !h.begun || h.ended:
		return false
	case h.id == "":
		return h.period.Equal(period)
	}
	return !at.Before(h.from) && (h.until.IsZero() || at.Before(h.until))
}

// sooner: the lower priority, the earlier end, the plan, the earlier beginning, the older.
func (h *heap) sooner(o *heap) bool {
	switch {
	case h.priority != o.priority:
		return h.priority < o.priority
	case !h.until.Equal(o.until):
		return !h.until.IsZero() && (o.until.IsZero() || h.until.Before(o.until))
	case h.id == "" || o.id == "":
		return h.id == ""
	case !h.from.Equal(o.from):
		return h.from.Before(o.from)
	case !h.created.Equal(o.created):
		return h.created.Before(o.created)
	}
	return h.id < o.id
}

func (m *model) charge(a act) {
	late := a.at.Before(m.closed)
	at := a.at
	if late {
		at = m.closed
	}
	period := m.open(at)
	m.watch(period, a.at, func() { m.use(period, a.at, a.bytes) })
	if late && a.bytes > 0 {
		m.fact("%s adjusted by %d for %s of %s", day(period), -a.bytes, a.id, day(m.period(a.at)))
	}
}

// begin gives a provisional organization its first plan.
func (m *model) begin(a act) {
	m.first = &a.plan
	m.closed = m.period(a.at)
	slices.SortFunc(m.opened, time.Time.Compare)
	for _, period := range m.opened {
		m.allow(period)
	}
	if len(m.opened) > 0 && m.opened[0].Before(m.closed) {
		m.closed = m.opened[0]
	}
	m.open(a.at)
}

func (p Plan) equalTerms(o Plan) bool {
	return p.Tier == o.Tier && p.Quota == o.Quota && p.RequestsPerMinute == o.RequestsPerMinute && p.Overage == o.Overage && p.OverageCap == o.OverageCap
}

func (m *model) subscribe(a act) {
	inForce, next, from := m.inForce(a.at), m.scheduled(a.at), a.at
	if a.effective == PeriodEnd || m.quota(a.plan) < m.quota(inForce) {
		from = m.end(m.period(a.at))
	}
	switch {
	case a.plan.equalTerms(inForce):
		if next != nil {
			m.changes = append(m.changes, change{decided: a.at})
		}
		return
	case next != nil && a.plan.equalTerms(*next) && from.Equal(next.From):
		return
	}
	a.plan.From = from
	if from.After(a.at) {
		m.changes = append(m.changes, change{a.at, &a.plan})
		return
	}
	m.replace(inForce, a)
}

// replace changes the plan at once, and gives the difference for the rest of the period, rounded up.
func (m *model) replace(before Plan, a act) {
	period := m.open(a.at)
	more := max(0, m.quota(a.plan)-m.quota(before))
	whole, rest := m.end(period).Sub(period), m.end(period).Sub(a.at)
	share := new(big.Int).Mul(big.NewInt(more), big.NewInt(int64(rest)))
	share.Add(share, big.NewInt(int64(whole)-1)).Div(share, big.NewInt(int64(whole)))
	m.watch(period, a.at, func() {
		m.changes = append(m.changes, change{a.at, &a.plan})
		m.add(m.planHeap(period), period, share.Int64())
	})
	m.retier(period, before, a.plan)
}

func (m *model) retier(period time.Time, before, after Plan) {
	if before.Tier != after.Tier {
		m.fact("%s %s>%s", day(period), before.Tier, after.Tier)
	}
}

func (m *model) give(a act) {
	g := a.grant
	h := &heap{id: a.id, priority: g.Priority, from: g.Starts, until: g.Expires, created: a.at, carried: g.RolloverCap, amount: g.Amount}
	h.warned = g.Expires.IsZero() || g.Expires.Sub(g.Starts) <= 7*24*time.Hour
	m.heaps = append(m.heaps, h)
	if !h.from.After(a.at) {
		m.start(h, a.at)
	}
}

func (m *model) start(h *heap, at time.Time) {
	period := m.open(at)
	h.begun = true
	m.watch(period, at, func() { m.add(h, period, h.amount) })
}

func (m *model) void(a act) {
	h := m.heap(a.id)
	if h.begun && h.left > 0 {
		period := m.open(a.at)
		m.watch(period, a.at, func() { m.take(h, period, "voided", h.left) })
	}
	h.ended = true
}

func (m *model) heap(id string) *heap {
	return m.heaps[slices.IndexFunc(m.heaps, func(h *heap) bool { return h.id == id })]
}

func (m *model) adjust(a act) {
	period := m.open(a.at)
	if a.bytes < 0 {
		m.watch(period, a.at, func() { m.use(period, a.at, -a.bytes) })
	} else {
		h := &heap{id: a.id, from: a.at, until: m.end(period), created: a.at, amount: a.bytes, warned: true}
		m.heaps = append(m.heaps, h)
		m.start(h, a.at)
	}
	of := "none"
	if !a.of.IsZero() {
		of = day(m.period(a.of))
	}
	m.fact("%s adjusted by %d for %s of %s", day(period), a.bytes, a.id, of)
}

// advance does what is due, one instant after the other.
func (m *model) advance(through time.Time) {
	for {
		due := m.end(m.period(m.closed))
		for _, h := range m.heaps {
			for _, at := range h.agenda() {
				if at.Before(due) {
					due = at
				}
			}
		}
		if due.After(through) {
			return
		}
		m.pass(due)
	}
}

func (h *heap) agenda() (agenda []time.Time) {
	if h.id == "" || h.ended {
		return nil
	}
	if !h.begun {
		return append(agenda, h.from)
	}
	if h.left == 0 {
		return nil
	}
	if !h.until.IsZero() {
		agenda = append(agenda, h.until)
	}
	if !h.warned {
		agenda = append(agenda, h.until.Add(-7*24*time.Hour))
	}
	return agenda
}

func (m *model) pass(due time.Time) {
	for _, h := range m.heaps {
		if isGrant(h) && h.begun && !h.ended && h.left > 0 && !h.until.IsZero() && !h.until.After(due) {
			m.expire(h, due)
		}
	}
	if m.end(m.period(m.closed)).Equal(due) {
		m.close(due)
		m.turnAll(due)
	}
	for _, h := range m.heaps {
		if isGrant(h) && !h.begun && !h.ended && !h.from.After(due) {
			m.start(h, due)
		}
		if isGrant(h) && h.begun && !h.ended && h.left > 0 && !h.warned && !h.until.Add(-7*24*time.Hour).After(due) {
			h.warned = true
			m.fact("%s expiring", h.id)
		}
	}
}

func (m *model) expire(h *heap, due time.Time) {
	at := due.Add(-time.Microsecond)
	period := m.open(at)
	m.watch(period, at, func() { m.take(h, period, "lapsed", h.left) })
	h.ended = true
	m.fact("%s expired", h.id)
}

func (m *model) close(due time.Time) {
	last := due.Add(-time.Microsecond)
	period := m.open(last)
	wasOut := m.isOut(period, last)
	for _, h := range m.heaps {
		switch {
		case h.id == "" && h.period.Equal(period):
			m.take(h, period, "lapsed", h.left)
		case h.id != "" && h.begun && !h.ended && h.carried != nil && h.left > *h.carried && h.from.Before(due) && h.created.Before(due):
			m.take(h, period, "lapsed", h.left-*h.carried)
		}
	}
	m.closed = due
	m.fact("%s closed", day(period))
	next := m.open(due)
	if wasOut && !m.isOut(next, due) {
		m.fact("%s restored", day(next))
	}
	m.retier(next, m.inForce(last), m.inForce(due))
}
