package ledger

import (
	"slices"
	"time"
)

// noCap is more overage than there can be.
const noCap = int64(1) << 56

// limitOf is how much may be used in a period.
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

// latch has a refusal exhaust the period, until its limit is raised.
func (m *model) latch(a act) {
	if a.at.Before(m.closed) {
		return
	}
	period := m.open(a.at)
	wasOut := m.isOut(period, a.at)
	m.latched[period] = max(m.latched[period], min(a.bytes, m.limitOf(period, a.at)))
	m.cross(period)
	m.exhaust(period, a.at, wasOut)
}

func (m *model) isLatched(period, at time.Time) bool {
	return m.latched[period] > 0 && m.limitOf(period, at) <= m.latched[period]
}

// raise ends what was refused by a limit that was smaller.
func (m *model) raise(period, at time.Time, limit int64) {
	if m.limitOf(period, at) > limit {
		m.latched[period] = 0
	}
}

func (m *model) setThresholds(a act) {
	if m.own && slices.Equal(a.percents, m.percents) {
		return
	}
	period := m.open(a.at)
	m.own, m.percents = true, a.percents
	m.cross(period)
	for _, p := range m.purses {
		m.turn(p, period)
		m.regard(p, m.purseIsOut(p))
	}
}

// refusing is a request that what is left did not cover: by the limit as it
// is, or as another replica knew it.
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
