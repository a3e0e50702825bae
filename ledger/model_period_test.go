package ledger

import (
	"math/big"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// span returns the period of an instant and the length of the full period.
func (m *model) span(at time.Time) (period calendar.Period, whole time.Duration) {
	day, from := m.anchor, time.Time{}
	for _, a := range m.anchors {
		if !at.Before(a.of) {
			day, from = int(a.bytes), a.of
		}
	}
	period = calendar.PeriodAt(at, day)
	whole = period.End.Sub(period.Start)
	if from.After(period.Start) {
		period.Start = from
	}
	return period, whole
}

func (m *model) period(at time.Time) time.Time {
	period, _ := m.span(at)
	return period.Start
}

func (m *model) end(start time.Time) time.Time {
	period, _ := m.span(start)
	return period.End
}

// share returns a period's part of bytes from an instant on, rounded up.
func (m *model) share(bytes int64, from time.Time) int64 {
	period, whole := m.span(from)
	part := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(int64(period.End.Sub(from))))
	part.Add(part, big.NewInt(int64(whole)-1))
	return part.Div(part, big.NewInt(int64(whole))).Int64()
}

// moveAnchor sets the anchor day from the end of the running period on.
func (m *model) moveAnchor(a act) {
	end := m.end(a.at)
	m.anchors = slices.DeleteFunc(m.anchors, func(before act) bool { return before.of.After(a.at) })
	m.anchors = append(m.anchors, act{of: end, bytes: a.bytes})
}

// open opens a period with its plan's allowance.
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
		quota := m.share(quotaOf(m.inForce(period)), period)
		m.watch(period, period, func() { m.add(m.planHeap(period), period, quota) })
	}
}

func (m *model) owed(period time.Time) int64 {
	return m.total(period, "owed", anyHeap) - m.total(period, "paid", anyHeap)
}

// left returns what may be used in a period.
func (m *model) left(period time.Time) (left int64) {
	for _, h := range m.heaps {
		if h.begun && (h.id != "" || h.period.Equal(period)) {
			left += h.left
		}
	}
	return left
}

// balances returns the expected balances of a period.
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
	b[Overshoot] = m.total(period, "over", anyHeap)
	b[Issuer] = -m.total(period, "given", anyHeap) - b[Overage] - b[Overshoot]
	return b
}

// isExhausted reports whether a period with an allowance accepts no more.
func (m *model) isExhausted(period, at time.Time) bool {
	if m.first == nil || m.left(period)+m.total(period, "used", anyHeap) == 0 {
		return false
	}
	return m.isRefused(period, at) || m.isUsedUp(period, at)
}

// isUsedUp reports whether a period has nothing left and no more overage.
func (m *model) isUsedUp(period, at time.Time) bool {
	return m.left(period) == 0 && m.owed(period) >= overageOf(m.inForce(m.within(period, at)))
}

func (m *model) within(period, at time.Time) time.Time {
	if at.Before(period) {
		return period
	}
	return at
}

// watch records the facts that a change causes in a period and in later
// open ones, which share its grants.
func (m *model) watch(period, at time.Time, change func()) {
	m.watchAhead(period, at, func() { m.watchOne(period, at, change) })
}

// watchAhead records the facts of open periods after one that changes the grants.
func (m *model) watchAhead(period, at time.Time, change func()) {
	granted, wasOut, limits := m.granted(), map[time.Time]bool{}, map[time.Time]int64{}
	ahead := slices.SortedFunc(slices.Values(m.opened), time.Time.Compare)
	ahead = slices.DeleteFunc(ahead, func(other time.Time) bool { return !other.After(period) })
	for _, other := range ahead {
		wasOut[other], limits[other] = m.isExhausted(other, at), m.limitOf(other, at)
	}
	change()
	if m.granted() == granted {
		return
	}
	for _, other := range ahead {
		m.raise(other, at, limits[other])
		m.cross(other)
		m.exhaust(other, at, wasOut[other])
	}
}

// granted returns what is left of all grants.
func (m *model) granted() (left int64) {
	for _, h := range m.heaps {
		if isGrant(h) && h.begun {
			left += h.left
		}
	}
	return left
}

func (m *model) watchOne(period, at time.Time, change func()) {
	wasOut, owed, limit := m.isExhausted(period, at), m.owed(period), m.limitOf(period, at)
	change()
	m.raise(period, at, limit)
	m.cross(period)
	if m.first != nil && owed == 0 && m.owed(period) > 0 && m.inForce(m.within(period, at)).Overage {
		m.fact("%s overage", day(period))
	}
	m.exhaust(period, at, wasOut)
}

// cross records the thresholds that a period has reached.
func (m *model) cross(period time.Time) {
	used, all := m.total(period, "used", anyHeap), m.total(period, "used", anyHeap)+m.left(period)
	for _, percent := range m.percents {
		if all > 0 && (used+m.owed(period))*100 >= all*int64(percent) && m.reached[period] < percent {
			m.reached[period] = percent
			m.fact("%s %d%%", day(period), percent)
		}
	}
}

// exhaust records an exhaustion or restoration of a period.
func (m *model) exhaust(period, at time.Time, wasOut bool) {
	switch isExhausted := m.isExhausted(period, at); {
	case isExhausted && !wasOut:
		m.fact("%s exhausted", day(period))
	case wasOut && !isExhausted:
		m.fact("%s restored", day(period))
	}
}

// advance does everything due, one instant after the other.
func (m *model) advance(through time.Time) {
	for {
		due := m.end(m.period(m.closed))
		for _, h := range m.heaps {
			for _, at := range h.dueTimes() {
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

func (m *model) pass(due time.Time) {
	for _, h := range m.heaps {
		if isGrant(h) && h.begun && !h.ended && h.left > 0 && !h.until.IsZero() && !h.until.After(due) {
			m.expire(h, due)
		}
	}
	if m.end(m.period(m.closed)).Equal(due) {
		m.close(due)
		m.renewAll(due)
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

// state makes the statements of closed periods.
func (m *model) state() {
	for _, period := range m.closing {
		m.fact("%s statement", day(period))
	}
	m.closing = nil
}

// gone returns what periods from an instant on took of a heap.
func (m *model) gone(h *heap, since time.Time) (bytes int64) {
	for _, n := range m.notes {
		if n.heap == h && n.what != "given" && !n.period.Before(since) {
			bytes += n.bytes
		}
	}
	return bytes
}

func (m *model) close(due time.Time) {
	last := due.Add(-time.Microsecond)
	period := m.open(last)
	wasOut := m.isExhausted(period, last)
	m.watchAhead(period, last, func() { m.lapse(period, due) })
	m.closed = due
	m.fact("%s closed", day(period))
	m.closing = append(m.closing, period)
	next := m.open(due)
	if wasOut && !m.isExhausted(next, due) {
		m.fact("%s restored", day(next))
	}
	m.retier(next, m.inForce(last), m.inForce(due))
}

// lapse removes what does not outlive a period.
func (m *model) lapse(period, due time.Time) {
	for _, h := range m.heaps {
		switch {
		case h.id == "" && h.period.Equal(period):
			m.take(h, period, "lapsed", h.left)
		case h.id != "" && h.begun && !h.ended && h.carried != nil && h.from.Before(due) && h.created.Before(due):
			if lost := min(h.left, h.left+m.gone(h, due)-*h.carried); lost > 0 {
				m.take(h, period, "lapsed", lost)
			}
		}
	}
}

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
