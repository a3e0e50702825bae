package ledger

import (
	"fmt"
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
