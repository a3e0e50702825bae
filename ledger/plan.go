package ledger

import (
	"cmp"
	"slices"
	"time"
)

// A Plan is what an organization subscribes to from an instant
// on. What is zero is as the tier has it.
type Plan struct {
	From              time.Time
	Tier              Tier
	Quota             int64 // bytes per period
	RequestsPerMinute int
	Overage           bool  // what exceeds the allowance is accepted, and charged as overage
	OverageCap        int64 // the most overage of a period, in bytes; 0: as much as comes
}

// overageAllowed is how much overage a period may have.
func (p Plan) overageAllowed() int64 {
	if !p.Overage {
		return 0
	}
	return cmp.Or(p.OverageCap, MaxGrant)
}

// sameTerms reports whether two plans differ in their beginning alone.
func (p Plan) sameTerms(other Plan) bool {
	p.From = other.From
	return p == other
}

// Terms finds what a plan allows; ErrUnknownTier where its tier is none.
func (p Plan) Terms(tiers Tiers) (Terms, error) {
	terms, err := tiers.Terms(p.Tier)
	terms.Quota = cmp.Or(p.Quota, terms.Quota)
	terms.RequestsPerMinute = cmp.Or(p.RequestsPerMinute, terms.RequestsPerMinute)
	return terms, err
}

// Plans are an organization's plans in the order of their instants: its timeline.
type Plans []Plan

// At is the plan in force at t; before the first plan, that one;
// the zero Plan where there is none.
func (p Plans) At(t time.Time) (in Plan) {
	for i, plan := range p {
		if i > 0 && plan.From.After(t) {
			break
		}
		in = plan
	}
	return in
}

// Next is the plan that takes the place of the one in force at t;
// found is false where none is scheduled.
func (p Plans) Next(t time.Time) (next Plan, found bool) {
	at := slices.IndexFunc(p, func(plan Plan) bool { return plan.From.After(t) })
	if at < 0 {
		return Plan{}, false
	}
	return p[at], true
}

// maxPlans bounds a timeline. The instant of the first says
// since when the organization is known.
const maxPlans = 100

// Then continues the timeline with plan after what is in force at an
// instant. What was scheduled is dropped, and of too many the oldest but the
// first: their periods have their allowance.
func (p Plans) Then(plan Plan, at time.Time) Plans {
	then := append(p.Until(at), plan)
	if len(then) > maxPlans {
		then = slices.Delete(then, 1, 2)
	}
	return then
}

// Until is the timeline without what is scheduled after an instant.
func (p Plans) Until(at time.Time) Plans {
	return slices.DeleteFunc(slices.Clone(p), func(plan Plan) bool { return plan.From.After(at) })
}
