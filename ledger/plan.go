package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"
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

// MaxReason is the longest reason, in characters.
const MaxReason = 500

// Grant decides a grant. It reads only the fields of spec that a request sets.
func (b *Books) Grant(spec Grant, id string, at time.Time) (Decision, error) {
	if spec.Starts.IsZero() {
		spec.Starts = at
	}
	if err := spec.validate(at); err != nil {
		return nil, err
	}
	if err := b.room(spec.Amount); err != nil {
		return nil, err
	}
	return Granted{Grant: Grant{
		ID: id, Amount: spec.Amount, Priority: spec.Priority, Starts: spec.Starts, Expires: spec.Expires, RolloverCap: spec.RolloverCap,
		Source: FromBilling, Reason: spec.Reason, Created: at,
	}}, nil
}

func (g Grant) validate(at time.Time) error {
	switch {
	case g.Amount < 1 || g.Amount > MaxGrant:
		return Invalid{"amount", fmt.Sprintf("The amount is %d bytes.", g.Amount), fmt.Sprintf("Use a whole number from 1 to %d.", MaxGrant)}
	case g.Priority < 0 || g.Priority > MaxPriority:
		return Invalid{"priority", fmt.Sprintf("The priority is %d.", g.Priority),
			fmt.Sprintf("Use a whole number from 0, which is used first, to %d. The plan has %d.", MaxPriority, PlanPriority)}
	case g.Starts.Year() < FirstYear || g.Starts.Year() > LastYear:
		return Invalid{"starts_at", fmt.Sprintf("starts_at is %s.", g.Starts.Format(time.RFC3339)),
			fmt.Sprintf("Use a time of the years %d to %d.", FirstYear, LastYear)}
	case !g.Expires.IsZero() && (!g.Expires.After(g.Starts) || !g.Expires.After(at) || g.Expires.Year() > LastYear):
		return Invalid{"expires_at", fmt.Sprintf("expires_at is %s.", g.Expires.Format(time.RFC3339)),
			fmt.Sprintf("Use a time behind starts_at and now, until the year %d, or leave it out.", LastYear)}
	case g.RolloverCap != nil && (*g.RolloverCap < 0 || *g.RolloverCap > g.Amount):
		return Invalid{"rollover_cap", fmt.Sprintf("The rollover cap is %d bytes.", *g.RolloverCap), "Use a whole number from 0 to the amount, or leave it out."}
	}
	return validateReason(g.Reason)
}

func validateReason(reason string) error {
	for _, r := range reason {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return Invalid{"reason", fmt.Sprintf("The reason has the character %q.", r), "Use text without control characters."}
		}
	}
	if utf8.RuneCountInString(reason) > MaxReason {
		return Invalid{"reason", fmt.Sprintf("The reason has %d characters.", utf8.RuneCountInString(reason)), fmt.Sprintf("Use at most %d.", MaxReason)}
	}
	return nil
}

// room refuses a grant beyond the organization's limits.
func (b *Books) room(amount int64) error {
	live, all := 0, amount
	for _, g := range b.Grants {
		if g.live() {
			live++
			all += max(g.Remaining, g.Amount-g.Consumed-g.Expired-g.Voided)
		}
	}
	switch {
	case live >= MaxGrants:
		return tooManyGrants
	case all > MaxGrant:
		return Invalid{"amount", fmt.Sprintf("With it the organization would have %d bytes of grants.", all),
			fmt.Sprintf("Use an amount with which they are at most %d.", MaxGrant)}
	}
	return nil
}

// Void decides to take back what is left of a grant; nothing if none is.
// What an adjustment gave back is no grant.
func (b *Books) Void(g Grant) ([]Decision, error) {
	switch {
	case g.Source == FromAdjustment:
		return nil, Invalid{"", fmt.Sprintf("%s is an adjustment, which can't be voided.", g.ID), "Make an adjustment of as many bytes below zero."}
	case b.grant(g.ID) == nil:
		return nil, nil
	}
	return []Decision{Revoked{Grant: g.ID}}, nil
}

// Adjust decides an adjustment. of is any instant of the wrong period;
// zero: the running one.
func (b *Books) Adjust(bytes int64, reason, id string, of, at time.Time) (Decision, error) {
	if bytes == 0 || bytes > MaxGrant || bytes < -MaxGrant {
		return nil, Invalid{"amount", fmt.Sprintf("The amount is %d bytes.", bytes),
			fmt.Sprintf("Use a whole number to %d: above zero to give back, below zero to charge.", MaxGrant)}
	}
	if err := validateReason(reason); err != nil {
		return nil, err
	}
	if !of.IsZero() {
		if of.After(at) || of.Before(b.Organization.Plans[0].From.AddDate(0, -1, -1)) {
			return nil, Invalid{"period", fmt.Sprintf("The organization had no period at %s.", of.Format(time.RFC3339)), "Use an instant of a period that has begun."}
		}
		of = b.periodAt(of).Start
	}
	if bytes > 0 {
		if err := b.room(bytes); err != nil {
			return nil, err
		}
	}
	return Adjusted{ID: id, Bytes: bytes, Reason: reason, Of: of}, nil
}
