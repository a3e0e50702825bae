package ledger

import (
	"slices"
	"time"
)

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
