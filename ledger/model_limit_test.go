package ledger

import (
	"slices"
	"time"
)

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
