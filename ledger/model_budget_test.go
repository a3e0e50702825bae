package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A purse is a budget of the model: what it has used is what its spender has
// sent in a period, whenever the budget was set.
type purse struct {
	spender Spender
	bytes   int64
	period  time.Time // the latest that was seen
	reached int
	refused int64
}

func (m *model) purse(of Spender) *purse {
	for _, p := range m.purses {
		if p.spender == of {
			return p
		}
	}
	return nil
}

// sentIn adds up what a spender has sent of acts that were accepted in a period.
func sentIn(acts []act, of Spender, period calendar.Period) (bytes int64) {
	for _, a := range acts {
		if a.kind == actCharge && period.Contains(a.at) && (of.Key != "" && of.Key == a.by.Key || of.Key == "" && of.Project == a.by.Project) {
			bytes += a.bytes
		}
	}
	return bytes
}

func (m *model) used(p *purse) int64 {
	period, _ := m.span(p.period)
	return sentIn(m.seen, p.spender, period)
}

func (m *model) purseIsOut(p *purse) bool { return m.used(p) >= p.bytes || p.refused >= p.bytes }

// spend notes a charge, and what becomes true of the budgets that it counts in.
func (m *model) spend(a act) {
	start := m.period(a.at)
	for _, p := range m.purses {
		if (p.spender.Project != a.by.Project || p.spender.Project == "") && (p.spender.Key != a.by.Key || p.spender.Key == "") || start.Before(p.period) {
			continue
		}
		m.turn(p, start)
		wasOut := m.purseIsOut(p)
		m.seen = append(m.seen, a)
		m.regard(p, wasOut)
		m.seen = m.seen[:len(m.seen)-1]
	}
	m.seen = append(m.seen, a)
}

// turn has a budget enter a period.
func (m *model) turn(p *purse, start time.Time) {
	if !start.After(p.period) {
		return
	}
	wasOut := m.purseIsOut(p)
	p.period, p.reached, p.refused = start, 0, 0
	m.regard(p, wasOut)
}

func (m *model) turnAll(start time.Time) {
	for _, p := range m.purses {
		m.turn(p, start)
	}
}

func (m *model) regard(p *purse, wasOut bool) {
	for _, percent := range m.percents {
		if m.used(p)*100 >= p.bytes*int64(percent) && p.reached < percent {
			p.reached = percent
			m.fact("%s %s %d%%", day(p.period), p.spender, percent)
		}
	}
	if isOut := m.purseIsOut(p); isOut != wasOut {
		m.fact("%s %s %s", day(p.period), p.spender, map[bool]string{true: "exhausted", false: "restored"}[isOut])
	}
}

func (m *model) setBudget(a act) {
	p, wasOut := m.purse(a.by), false
	if p != nil && p.bytes == a.bytes {
		return
	}
	period := m.open(a.at)
	if p == nil {
		p = &purse{spender: a.by, period: period}
		m.purses = append(m.purses, p)
	} else {
		m.turn(p, period)
		wasOut = m.purseIsOut(p)
	}
	p.bytes, p.refused = a.bytes, min(p.refused, a.bytes)
	m.regard(p, wasOut)
}

func (m *model) dropBudget(a act) {
	m.purses = slices.DeleteFunc(m.purses, func(p *purse) bool { return p.spender == a.by })
}

func (m *model) refuse(a act) {
	if a.by == (Spender{}) {
		m.latch(a)
		return
	}
	p := m.purse(a.by)
	if p == nil || a.at.Before(m.closed) || m.period(a.at).Before(p.period) {
		return
	}
	m.turn(p, m.period(a.at))
	wasOut := m.purseIsOut(p)
	p.refused = max(p.refused, min(a.bytes, p.bytes))
	m.regard(p, wasOut)
}

// sender is one of few projects and keys.
func (h *history) sender() Spender {
	return Spender{Project: fmt.Sprintf("p%d", h.random.IntN(2)), Key: fmt.Sprintf("k%d", h.random.IntN(3))}
}

// spender is one of those that may have a budget.
func (h *history) spender() Spender {
	if by := h.sender(); h.random.IntN(2) == 0 {
		return Spender{Project: by.Project}
	} else {
		return Spender{Key: by.Key}
	}
}

// budgeting is something about a budget.
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
	if len(h.budgets) != len(m.purses) || h.organization.Budgets != len(m.purses) {
		h.fail("%d budgets, counted %d, the model has %d", len(h.budgets), h.organization.Budgets, len(m.purses))
	}
	for i, p := range m.purses {
		b := h.budgets[i]
		if b.Spender != p.spender || b.Bytes != p.bytes || !b.Period.Equal(p.period) || b.Used != m.used(p) || b.IsOut() != m.purseIsOut(p) {
			h.fail("budget %+v\n  model %+v has used %d", b, *p, m.used(p))
		}
	}
}

func budgetFactOf(e Event) string {
	what := map[EventKind]string{BudgetExhausted: "exhausted", BudgetRestored: "restored", BudgetThresholdReached: fmt.Sprintf("%d%%", e.Percent)}[e.Kind]
	return fmt.Sprintf("%s %s %s", day(e.Book.Period.Start), e.Budget.Spender, what)
}
