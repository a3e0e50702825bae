package ledger

import (
	"slices"
	"time"
)

// StandingOf hashes what decisions have made of an organization: its plans,
// when its periods begin, whether it is suspended, its thresholds, which
// periods are closed, the time of a test, and its budgets, in any order.
// Charges change none of it.
func StandingOf(o Organization, budgets []Budget) Hash {
	d := newDigest(standingForm)
	d.text(o.ID)
	d.time(o.Opened, o.ClosedThrough, o.Clock)
	d.flag(o.Suspended)
	d.number(int64(o.Budgets), int64(o.AnchorDay), int64(len(o.Anchors)))
	for _, anchor := range o.Anchors {
		d.time(anchor.From)
		d.number(int64(anchor.Day))
	}
	o.Thresholds.hashTo(d)
	o.Usual.hashTo(d)
	d.number(int64(len(o.Plans)))
	for _, plan := range o.Plans {
		plan.hashTo(d)
	}
	budgets = slices.SortedFunc(slices.Values(budgets), func(a, b Budget) int { return CompareSpenders(a.Spender, b.Spender) })
	for _, budget := range budgets {
		d.text(budget.Project)
		d.text(budget.Key)
		d.number(budget.Bytes, budget.Since)
	}
	return d.sum()
}

// standing returns the standing of opened books.
func (b *Books) standing() Hash {
	budgets := make([]Budget, len(b.Budgets))
	for i, budget := range b.Budgets {
		budgets[i] = *budget
	}
	return StandingOf(b.Organization, budgets)
}

func (p Plan) hashTo(d digest) {
	d.time(p.From)
	d.text(string(p.Tier))
	d.number(p.Quota, int64(p.RequestsPerMinute), p.OverageCap)
	d.flag(p.Overage)
	d.number(p.TierTerms.Version, p.TierTerms.Quota, int64(p.TierTerms.RequestsPerMinute), int64(p.TierTerms.RetentionDays))
}

func (t Thresholds) hashTo(d digest) {
	d.flag(t == nil)
	d.number(int64(len(t)))
	for _, percent := range t {
		d.number(int64(percent))
	}
}

// A Step is a decision that opened books have made, with the standing of
// their organization before and after it.
type Step struct {
	Decision      Decision
	Before, After Hash
}

// Hash returns the hash of a decision as it is stored. The decision has
// that of the one before.
func (d LinkedDecision) Hash() Hash {
	digest := newDigest(decisionForm)
	digest.number(d.Number)
	digest.text(d.Name)
	digest.text(d.Data)
	digest.text(d.Metadata)
	return digest.sum()
}

// time adds instants as they are stored, in microseconds.
func (d digest) time(instants ...time.Time) {
	for _, at := range instants {
		d.flag(at.IsZero())
		d.number(at.UnixMicro())
	}
}

func (d digest) flag(is bool) {
	if is {
		d.number(1)
		return
	}
	d.number(0)
}
