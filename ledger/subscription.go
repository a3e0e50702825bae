package ledger

import (
	"fmt"
	"time"
)

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
func (b *Books) Subscribe(rules Rules, s Subscription, at time.Time) (change []Decision, err error) {
	if err := s.Plan.validate(); err != nil {
		return nil, err
	}
	if s.Plan, err = rules.Seed(s.Plan); err != nil {
		return nil, Invalid{"tier", fmt.Sprintf("The tier %q is unknown.", s.Plan.Tier), "Use indie, bootstrapper, compliance or scale."}
	}
	if change, err = b.changePlan(s, at); err != nil {
		return nil, err
	}
	if s.AnchorDay != nil {
		anchored, err := b.changeAnchor(*s.AnchorDay, at)
		if err != nil {
			return nil, err
		}
		change = append(change, anchored...)
	}
	if s.Suspended != nil && *s.Suspended != b.Organization.Suspended {
		change = append(change, SuspensionChanged{Suspended: *s.Suspended})
	}
	return change, nil
}

func (b *Books) changePlan(s Subscription, at time.Time) ([]Decision, error) {
	effective, err := b.effective(s, at)
	if err != nil {
		return nil, err
	}
	next, scheduled := b.Organization.Plans.Next(at)
	switch inForce := b.Organization.Plans.At(at); {
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

// effective returns when a subscription takes effect.
func (b *Books) effective(s Subscription, at time.Time) (time.Time, error) {
	inForce, wanted := b.Organization.Plans.At(at).Terms(), s.Plan.Terms()
	less := wanted.Quota < inForce.Quota
	switch {
	case s.Effective == Now && less:
		return at, Invalid{"effective", fmt.Sprintf("The plan allows %d bytes a period, which is less than the %d of the one in force: it can't take effect now.",
			wanted.Quota, inForce.Quota), "Use period_end."}
	case s.Effective == Now, s.Effective == "" && !less:
		return at, nil
	case s.Effective == PeriodEnd, s.Effective == "":
		return b.periodAt(at).End, nil
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
