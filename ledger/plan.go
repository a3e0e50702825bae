package ledger

import (
	"cmp"
	"fmt"
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

// in returns the plan of a book at an instant. A late charge uses
// the open period's plan.
func (p Plans) in(book *Book, at time.Time) Plan {
	if at.Before(book.Period.Start) {
		at = book.Period.Start
	}
	return p.At(at)
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

// When a plan change takes effect.
const (
	Now       = "now"
	PeriodEnd = "period_end"
)

// MaxRequestsPerMinute is the highest rate of a plan.
const MaxRequestsPerMinute = 1_000_000

// A Subscription is a requested subscription.
type Subscription struct {
	Plan      Plan   // from when it takes effect
	Effective string // Now or PeriodEnd; empty: now unless it allows less than the current plan
	Suspended *bool  // nil: unchanged
	AnchorDay *int   `json:",omitempty"` // nil: unchanged; stored with requests
}

// Subscribe decides a subscription, with the terms of its tier, and cancels the scheduled one.
func (r Rules) Subscribe(o Organization, s Subscription, at time.Time) (change []Decision, err error) {
	if err := s.Plan.validate(); err != nil {
		return nil, err
	}
	if s.Plan, err = r.Seed(s.Plan); err != nil {
		return nil, Invalid{"tier", fmt.Sprintf("The tier %q is unknown.", s.Plan.Tier), "Use indie, bootstrapper, compliance or scale."}
	}
	if change, err = s.changePlan(o, at); err != nil {
		return nil, err
	}
	if s.AnchorDay != nil {
		anchored, err := o.changeAnchor(*s.AnchorDay, at)
		if err != nil {
			return nil, err
		}
		change = append(change, anchored...)
	}
	if s.Suspended != nil && *s.Suspended != o.Suspended {
		change = append(change, SuspensionChanged{Suspended: *s.Suspended})
	}
	return change, nil
}

func (s Subscription) changePlan(o Organization, at time.Time) ([]Decision, error) {
	effective, err := s.from(o, at)
	if err != nil {
		return nil, err
	}
	next, scheduled := o.Plans.Next(at)
	switch inForce := o.Plans.At(at); {
	case s.Plan.sameTerms(inForce) && !scheduled:
		return nil, nil
	case s.Plan.sameTerms(inForce):
		return []Decision{ChangeCancelled{}}, nil
	case scheduled && s.Plan.sameTerms(next) && effective.Equal(next.From):
		return nil, nil
	}
	s.Plan.From = effective
	return []Decision{PlanChanged{Plan: s.Plan}}, nil
}

// from returns when a subscription takes effect.
func (s Subscription) from(o Organization, at time.Time) (time.Time, error) {
	inForce, wanted := o.Plans.At(at).Terms(), s.Plan.Terms()
	less := wanted.Quota < inForce.Quota
	switch {
	case s.Effective == Now && less:
		return at, Invalid{"effective", fmt.Sprintf("The plan allows %d bytes a period, which is less than the %d of the one in force: it can't take effect now.",
			wanted.Quota, inForce.Quota), "Use period_end."}
	case s.Effective == Now, s.Effective == "" && !less:
		return at, nil
	case s.Effective == PeriodEnd, s.Effective == "":
		return o.PeriodAt(at).End, nil
	}
	return at, Invalid{"effective", fmt.Sprintf("effective is %q.", s.Effective), "Use now or period_end."}
}

func (p Plan) validate() error {
	switch {
	case p.Quota < 0 || p.Quota > MaxGrant:
		return Invalid{"quota", fmt.Sprintf("The quota is %d bytes.", p.Quota),
			fmt.Sprintf("Use a whole number from 1 to %d, or leave it out for the tier's.", MaxGrant)}
	case p.RequestsPerMinute < 0 || p.RequestsPerMinute > MaxRequestsPerMinute:
		return Invalid{"requests_per_minute", fmt.Sprintf("requests_per_minute is %d.", p.RequestsPerMinute),
			fmt.Sprintf("Use a whole number from 1 to %d, or leave it out for the tier's.", MaxRequestsPerMinute)}
	case p.OverageCap < 0 || p.OverageCap > MaxGrant:
		return Invalid{"overage_cap", fmt.Sprintf("The overage cap is %d bytes.", p.OverageCap),
			fmt.Sprintf("Use a whole number from 1 to %d, or leave it out for none.", MaxGrant)}
	case p.OverageCap > 0 && !p.Overage:
		return Invalid{"overage_cap", "There is an overage cap, and requests beyond the quota are refused.", `Set on_exhausted to "overage", or leave the cap out.`}
	}
	return nil
}
