package ledger

import (
	"slices"
	"time"
)

// A change of plans is decided at an instant; without a plan it cancels
// the scheduled one.
type change struct {
	decided time.Time
	plan    *Plan
}

func quotaOf(p Plan) int64 {
	if p.Quota > 0 {
		return p.Quota
	}
	return p.TierTerms.Quota
}

// inForce returns the plan of an instant: the last one decided for it
// and not cancelled before its start.
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

// begin sets a provisional organization's first plan.
func (m *model) begin(a act) {
	a.plan.TierTerms = a.tiers[a.plan.Tier]
	m.first = &a.plan
	m.closed = m.period(a.at)
	slices.SortFunc(m.opened, time.Time.Compare)
	for _, period := range m.opened {
		m.allow(period)
		if excess := m.owed(period) - overageOf(a.plan); excess > 0 {
			m.note(period, "paid", nil, excess)
			m.note(period, "over", nil, excess)
		}
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
	a.plan.TierTerms = a.tiers[a.plan.Tier]
	inForce, next, from := m.inForce(a.at), m.scheduled(a.at), a.at
	if a.effective == PeriodEnd || quotaOf(a.plan) < quotaOf(inForce) {
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

// replace changes the plan at once and adds the difference for the rest
// of the period, rounded up.
func (m *model) replace(before Plan, a act) {
	period := m.open(a.at)
	more := max(0, quotaOf(a.plan)-quotaOf(before))
	m.watch(period, a.at, func() {
		m.changes = append(m.changes, change{a.at, &a.plan})
		m.add(m.planHeap(period), period, m.share(more, a.at))
	})
	m.retier(period, before, a.plan)
}

func (m *model) retier(period time.Time, before, after Plan) {
	if before.Tier != after.Tier {
		m.fact("%s %s>%s", day(period), before.Tier, after.Tier)
	}
}

// retermed has the plan in force, from now on, and the scheduled one
// follow other terms.
func (m *model) retermed(a act) {
	inForce, next := m.inForce(a.at), m.scheduled(a.at)
	inForce.From, inForce.TierTerms = a.at, a.tiers[inForce.Tier]
	m.changes = append(m.changes, change{a.at, &inForce})
	if next != nil {
		scheduled := *next
		scheduled.TierTerms = a.tiers[scheduled.Tier]
		m.changes = append(m.changes, change{a.at, &scheduled})
	}
}
