package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A budgetModel is a budget of the model. Its use is what its spender
// has sent in a period, whenever the budget was set.
type budgetModel struct {
	spender Spender
	bytes   int64
	period  time.Time // the latest one
	reached int
	refused int64
}

func (m *model) budgetModel(of Spender) *budgetModel {
	for _, p := range m.budgets {
		if p.spender == of {
			return p
		}
	}
	return nil
}

// sentIn adds up a spender's accepted bytes of a period.
func sentIn(acts []act, of Spender, period calendar.Period) (bytes int64) {
	for _, a := range acts {
		if a.kind == actCharge && period.Contains(a.at) && (of.Key != "" && of.Key == a.by.Key || of.Key == "" && of.Project == a.by.Project) {
			bytes += a.bytes
		}
	}
	return bytes
}

func (m *model) used(p *budgetModel) int64 {
	period, _ := m.span(p.period)
	return sentIn(m.seen, p.spender, period)
}

func (m *model) purseIsOut(p *budgetModel) bool { return m.used(p) >= p.bytes || p.refused >= p.bytes }

// spend adds a charge to the budgets in which it counts.
func (m *model) spend(a act) {
	start := m.period(a.at)
	for _, p := range m.budgets {
		if (p.spender.Project != a.by.Project || p.spender.Project == "") && (p.spender.Key != a.by.Key || p.spender.Key == "") || start.Before(p.period) {
			continue
		}
		m.renew(p, start)
		wasOut := m.purseIsOut(p)
		m.seen = append(m.seen, a)
		m.announceBudget(p, wasOut)
		m.seen = m.seen[:len(m.seen)-1]
	}
	m.seen = append(m.seen, a)
}

// renew starts a budget's period.
func (m *model) renew(p *budgetModel, start time.Time) {
	if !start.After(p.period) {
		return
	}
	wasOut := m.purseIsOut(p)
	p.period, p.reached, p.refused = start, 0, 0
	m.announceBudget(p, wasOut)
}

func (m *model) renewAll(start time.Time) {
	for _, p := range m.budgets {
		m.renew(p, start)
	}
}

func (m *model) announceBudget(p *budgetModel, wasOut bool) {
	for _, percent := range m.percents {
		if m.used(p)*100 >= p.bytes*int64(percent) && p.reached < percent {
			p.reached = percent
			m.fact("%s %s %d%%", day(p.period), p.spender, percent)
		}
	}
	if isExhausted := m.purseIsOut(p); isExhausted != wasOut {
		m.fact("%s %s %s", day(p.period), p.spender, map[bool]string{true: "exhausted", false: "restored"}[isExhausted])
	}
}

func (m *model) setBudget(a act) {
	p, wasOut := m.budgetModel(a.by), false
	if p != nil && p.bytes == a.bytes {
		return
	}
	period := m.open(a.at)
	if p == nil {
		p = &budgetModel{spender: a.by, period: period}
		m.budgets = append(m.budgets, p)
	} else {
		m.renew(p, period)
		wasOut = m.purseIsOut(p)
	}
	p.bytes, p.refused = a.bytes, min(p.refused, a.bytes)
	m.announceBudget(p, wasOut)
}

func (m *model) dropBudget(a act) {
	m.budgets = slices.DeleteFunc(m.budgets, func(p *budgetModel) bool { return p.spender == a.by })
}

func (m *model) refuse(a act) {
	if a.by == (Spender{}) {
		m.refuseLimit(a)
		return
	}
	p := m.budgetModel(a.by)
	if p == nil || a.at.Before(m.closed) || m.period(a.at).Before(p.period) {
		return
	}
	m.renew(p, m.period(a.at))
	wasOut := m.purseIsOut(p)
	p.refused = max(p.refused, min(a.bytes, p.bytes))
	m.announceBudget(p, wasOut)
}

// sender returns a random project and key.
func (h *history) sender() Spender {
	return Spender{Project: fmt.Sprintf("p%d", h.random.IntN(2)), Key: fmt.Sprintf("k%d", h.random.IntN(3))}
}

// spender returns a random project or key.
func (h *history) spender() Spender {
	if by := h.sender(); h.random.IntN(2) == 0 {
		return Spender{Project: by.Project}
	} else {
		return Spender{Key: by.Key}
	}
}

// budgeting returns a random act about a budget.
func (h *history) budgeting() act {
	by := h.spender()
	switch h.random.IntN(5) {
	case 0:
		return act{kind: actUnbudget, at: h.now, by: by}
	case 1, 2:
		return act{kind: actRefuse, at: h.accepted(), by: by, bytes: 1 + h.random.Int64N(200)}
	}
	used := sentIn(h.acts, by, h.organization.PeriodAt(h.now))
	return act{kind: actBudget, at: h.now, by: by, bytes: 1 + h.random.Int64N(200), used: used}
}

func (h *history) compareBudgets(m *model) {
	h.t.Helper()
	if len(h.budgets) != len(m.budgets) || h.organization.Budgets != len(m.budgets) {
		h.fail("%d budgets, counted %d, the model has %d", len(h.budgets), h.organization.Budgets, len(m.budgets))
	}
	for i, p := range m.budgets {
		b := h.budgets[i]
		if b.Spender != p.spender || b.Bytes != p.bytes || !b.Period.Equal(p.period) || b.Used != m.used(p) || b.IsExhausted() != m.purseIsOut(p) {
			h.fail("budget %+v\n  model %+v has used %d", b, *p, m.used(p))
		}
	}
}

func budgetFactOf(e Event) string {
	what := map[EventKind]string{BudgetExhausted: "exhausted", BudgetRestored: "restored", BudgetThresholdReached: fmt.Sprintf("%d%%", e.Percent)}[e.Kind]
	return fmt.Sprintf("%s %s %s", day(e.Book.Period.Start), e.Budget.Spender, what)
}

// A heap holds the bytes of a grant or an allowance.
type heap struct {
	id                   string    // of the grant; empty: a plan's
	number               int       // in the order of decisions
	period               time.Time // of a plan's
	priority             int
	from, until, created time.Time
	carried              *int64
	amount, left         int64
	begun, ended, warned bool
}

func anyHeap(*heap) bool { return true }

func isGrant(h *heap) bool { return h != nil && h.id != "" }

func isPlans(h *heap) bool { return h != nil && h.id == "" }

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

func (m *model) heap(id string) *heap {
	return m.heaps[slices.IndexFunc(m.heaps, func(h *heap) bool { return h.id == id })]
}

func (m *model) give(a act) {
	g := a.grant
	h := &heap{id: a.id, number: len(m.heaps), priority: g.Priority, from: g.Starts, until: g.Expires, created: a.at, carried: g.RolloverCap, amount: g.Amount}
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

func (m *model) expire(h *heap, due time.Time) {
	at := due.Add(-time.Microsecond)
	period := m.open(at)
	m.watch(period, at, func() { m.take(h, period, "lapsed", h.left) })
	h.ended = true
	m.fact("%s expired", h.id)
}

// add adds bytes to a heap, which first pay for overage.
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

// use takes bytes from the next heaps and returns the rest.
func (m *model) use(period, at time.Time, bytes int64) (rest int64) {
	for bytes > 0 {
		var next *heap
		for _, h := range m.heaps {
			if h.pays(period, at) && (next == nil || h.usedBefore(next)) {
				next = h
			}
		}
		if next == nil {
			return bytes
		}
		taken := min(bytes, next.left)
		m.take(next, period, "used", taken)
		bytes -= taken
	}
	return 0
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

// usedBefore orders by lower priority, earlier end, the plan first,
// earlier start, then age.
func (h *heap) usedBefore(o *heap) bool {
	switch {
	case h.priority != o.priority:
		return h.priority < o.priority
	case !h.until.Equal(o.until):
		return !h.until.IsZero() && (o.until.IsZero() || h.until.Before(o.until))
	case h.id == "" || o.id == "":
		return h.id == ""
	case !h.from.Equal(o.from):
		return h.from.Before(o.from)
	}
	return h.number < o.number
}

func (h *heap) dueTimes() (dueTimes []time.Time) {
	if h.id == "" || h.ended {
		return nil
	}
	if !h.begun {
		return append(dueTimes, h.from)
	}
	if h.left == 0 {
		return nil
	}
	if !h.until.IsZero() {
		dueTimes = append(dueTimes, h.until)
	}
	if !h.warned {
		dueTimes = append(dueTimes, h.until.Add(-7*24*time.Hour))
	}
	return dueTimes
}
