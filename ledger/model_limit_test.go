package ledger

import (
	"slices"
	"time"
)

// noCap exceeds any overage.
const noCap = int64(1) << 56

// limitOf returns how much may be used in a period.
func (m *model) limitOf(period, at time.Time) int64 {
	if m.first == nil {
		return 0
	}
	plan, over := m.inForce(m.within(period, at)), int64(0)
	switch {
	case plan.Overage && plan.OverageCap == 0:
		over = noCap
	case plan.Overage:
		over = plan.OverageCap
	}
	return m.left(period) + m.total(period, "used", anyHeap) + over
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
