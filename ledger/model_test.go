package ledger

import (
	"fmt"
	"slices"
	"time"
)

// A model implements the rules of the books a second time, as plainly
// as possible: heaps of bytes, and notes of their changes. It keeps no
// balances but adds up notes. Books and model share no code but the calendar.
type model struct {
	anchor        int
	anchors       []act // changes of the day
	first         *Plan
	changes       []change
	closed        time.Time
	closing       []time.Time // periods whose statements follow
	heaps         []*heap
	notes         []note
	opened        []time.Time
	reached       map[time.Time]int
	facts         []string
	suspended     bool
	budgets       []*budgetModel
	seen          []act               // charges
	refusedLimits map[time.Time]int64 // the limits that did not cover a request, by period
	percents      []int               // of the thresholds
	own           bool                // the organization's own
}

type note struct {
	period time.Time
	what   string
	heap   *heap // nil: no grant's
	bytes  int64
}

// remember builds the model of a history.
func remember(anchor int, history []act) *model {
	m := &model{
		anchor: anchor, reached: map[time.Time]int{}, refusedLimits: map[time.Time]int64{}, percents: []int{50, 80, 100},
	}
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
			m.state()
		case actBudget:
			m.setBudget(a)
		case actUnbudget:
			m.dropBudget(a)
		case actRefuse:
			m.refuse(a)
		case actThresholds:
			m.setThresholds(a)
		case actAnchor:
			m.moveAnchor(a)
		case actTerms:
			m.retermed(a)
		}
	}
	return m
}

func (m *model) total(period time.Time, what string, of func(*heap) bool) (total int64) {
	for _, n := range m.notes {
		if n.period.Equal(period) && n.what == what && of(n.heap) {
			total += n.bytes
		}
	}
	return total
}

func (m *model) fact(format string, args ...any) {
	m.facts = append(m.facts, fmt.Sprintf(format, args...))
}

func day(period time.Time) string { return period.Format(time.DateOnly) }

func (m *model) note(period time.Time, what string, h *heap, bytes int64) {
	m.notes = append(m.notes, note{period, what, h, bytes})
}

func (m *model) charge(a act) {
	late := a.at.Before(m.closed)
	at := a.at
	if late {
		at = m.closed
	}
	period := m.open(at)
	m.watch(period, a.at, func() { m.exceed(period, m.use(period, a.at, a.bytes)) })
	if late && a.bytes > 0 {
		m.fact("%s adjusted by %d for %s of %s", day(period), -a.bytes, a.id, day(m.period(a.at)))
	}
}

func (m *model) adjust(a act) {
	period := m.open(a.at)
	if a.bytes < 0 {
		m.watch(period, a.at, func() { m.note(period, "owed", nil, m.use(period, a.at, -a.bytes)) })
	} else {
		h := &heap{id: a.id, number: len(m.heaps), from: a.at, until: m.end(period), created: a.at, amount: a.bytes, warned: true}
		m.heaps = append(m.heaps, h)
		m.start(h, a.at)
	}
	of := "none"
	if !a.of.IsZero() {
		of = day(m.period(a.of))
	}
	m.fact("%s adjusted by %d for %s of %s", day(period), a.bytes, a.id, of)
}

// An act is one step of an organization's history.
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
	percents  []int   // of thresholds
	tiers     Tiers   // the installation's by then
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
	actAnchor
	actThresholds
	actTerms
)

func (a act) rules() Rules { return Rules{Version: 1, Tiers: a.tiers, Thresholds: DefaultThresholds()} }

func (a act) String() string {
	name := [...]string{"charge", "plan", "subscribe", "suspend", "grant", "void", "adjust", "advance", "budget", "unbudget", "refuse", "anchor", "thresholds", "terms"}[a.kind]
	text := fmt.Sprintf("%s %s at %s", name, a.id, a.at.Format(time.RFC3339Nano))
	switch a.kind {
	case actPlan, actSubscribe:
		text += fmt.Sprintf(" %+v %s", a.plan, a.effective)
	case actGrant:
		text += fmt.Sprintf(" %+v", a.grant)
	case actTerms:
		text += fmt.Sprintf(" %+v", a.tiers)
	case actSuspend:
		text += fmt.Sprint(" ", a.suspended)
	case actCharge, actAdjust, actBudget, actUnbudget, actRefuse, actAnchor:
		text += fmt.Sprint(" ", a.bytes, " ", a.by)
	}
	return text
}

// noCap exceeds any overage.
const noCap = int64(1) << 56

// overageOf returns the most overage of a plan.
func overageOf(p Plan) int64 {
	switch {
	case !p.Overage:
		return 0
	case p.OverageCap == 0:
		return noCap
	}
	return p.OverageCap
}

// exceed records accepted bytes that no heap pays for: owed as far as
// the plan accepts it, and beyond that the operator's.
func (m *model) exceed(period time.Time, bytes int64) {
	owed := bytes
	if m.first != nil {
		plan := m.inForce(m.end(period).Add(-time.Microsecond))
		owed = min(bytes, max(0, overageOf(plan)-m.owed(period)))
	}
	m.note(period, "owed", nil, owed)
	m.note(period, "over", nil, bytes-owed)
}

// limitOf returns how much may be used in a period.
func (m *model) limitOf(period, at time.Time) int64 {
	if m.first == nil {
		return 0
	}
	return m.left(period) + m.total(period, "used", anyHeap) + overageOf(m.inForce(m.within(period, at)))
}

// refuseLimit has a refusal exhaust the period until its limit is raised.
func (m *model) refuseLimit(a act) {
	if a.at.Before(m.closed) {
		return
	}
	period := m.open(a.at)
	wasOut := m.isExhausted(period, a.at)
	m.refusedLimits[period] = max(m.refusedLimits[period], min(a.bytes, m.limitOf(period, a.at)))
	m.cross(period)
	m.exhaust(period, a.at, wasOut)
}

func (m *model) isRefused(period, at time.Time) bool {
	return m.refusedLimits[period] > 0 && m.limitOf(period, at) <= m.refusedLimits[period]
}

// raise ends refusals by a smaller limit.
func (m *model) raise(period, at time.Time, limit int64) {
	if m.limitOf(period, at) > limit {
		m.refusedLimits[period] = 0
	}
}

func (m *model) setThresholds(a act) {
	if m.own && slices.Equal(a.percents, m.percents) {
		return
	}
	period := m.open(a.at)
	m.own, m.percents = true, a.percents
	m.cross(period)
	for _, p := range m.budgets {
		m.renew(p, period)
		m.announceBudget(p, m.purseIsOut(p))
	}
}

// refusing returns a refusal by the current limit or by one another
// replica still has.
func (h *history) refusing() act {
	at := h.accepted()
	bytes := h.random.Int64N(300)
	if book, ok := h.books[h.organization.PeriodAt(at).Start]; ok {
		book.Pool = h.organization.Pool
		bytes = book.limit(h.organization.Plans.At(at)) + []int64{-5, 0, 0, 0, 5}[h.random.IntN(5)]
	}
	return act{kind: actRefuse, at: at, bytes: max(0, bytes)}
}

func (h *history) announcing() act {
	return act{kind: actThresholds, at: h.now, percents: [][]int{{50, 80, 100}, {}, {10, 90}, {30, 60, 100, 120}}[h.random.IntN(4)]}
}
