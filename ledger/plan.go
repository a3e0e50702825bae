package ledger

import (
	"cmp"
	"slices"
	"time"
)

// A Plan is a subscription from an instant on. Where Quota and
// RequestsPerMinute are zero, the tier's terms hold.
type Plan struct {
	From              time.Time
	Tier              Tier
	Quota             int64 // bytes per period
	RequestsPerMinute int
	Overage           bool  // requests beyond the allowance are charged as overage
	OverageCap        int64 // most overage of a period, in bytes; 0: unlimited
	TierTerms         Terms // of the tier, as they were when it was decided
}

// overageAllowed returns the most overage of a period.
func (p Plan) overageAllowed() int64 {
	if !p.Overage {
		return 0
	}
	return cmp.Or(p.OverageCap, MaxGrant)
}

// sameTerms reports whether the same was chosen for two plans, from
// whenever on and whatever the tier's terms were.
func (p Plan) sameTerms(other Plan) bool {
	p.From, p.TierTerms = other.From, other.TierTerms
	return p == other
}

// Terms returns the terms of a plan.
func (p Plan) Terms() Terms {
	terms := p.TierTerms
	terms.Quota = cmp.Or(p.Quota, terms.Quota)
	terms.RequestsPerMinute = cmp.Or(p.RequestsPerMinute, terms.RequestsPerMinute)
	return terms
}

// Plans are an organization's plans by time.
type Plans []Plan

// At returns the plan in force at t, or the first if t is earlier; the
// zero Plan if there is none.
func (p Plans) At(t time.Time) (in Plan) {
	for i, plan := range p {
		if i > 0 && plan.From.After(t) {
			break
		}
		in = plan
	}
	return in
}

// Next returns the plan scheduled after t; found is false where there is none.
func (p Plans) Next(t time.Time) (next Plan, found bool) {
	at := slices.IndexFunc(p, func(plan Plan) bool { return plan.From.After(t) })
	if at < 0 {
		return Plan{}, false
	}
	return p[at], true
}

// maxPlans bounds a timeline. Its first plan dates the organization.
const maxPlans = 100

// Then adds a plan after the one in force at an instant and drops the
// scheduled one. Beyond the bound it drops the oldest but the first:
// their periods have their allowance.
func (p Plans) Then(plan Plan, at time.Time) Plans {
	then := append(p.Until(at), plan)
	if len(then) > maxPlans {
		then = slices.Delete(then, 1, 2)
	}
	return then
}

// Until returns the timeline without plans scheduled after an instant.
func (p Plans) Until(at time.Time) Plans {
	return slices.DeleteFunc(slices.Clone(p), func(plan Plan) bool { return plan.From.After(at) })
}
