package ledger

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// Terms are what a tier allows.
type Terms struct {
	Version           int64 // of the Rules that had them; 0 in settings
	Quota             int64 // bytes per period, at least 1
	RequestsPerMinute int   // at least 1
	RetentionDays     int   // retention of logs, 1..tier.MaxRetentionDays
}

// same reports whether terms allow the same, whatever their versions.
func (t Terms) same(other Terms) bool {
	t.Version = other.Version
	return t == other
}

// TermsChanged has an organization follow other rules of the
// installation. The running period keeps its allowance; requests per
// minute and retention hold at once. Plans are those in force and
// scheduled, with their new terms.
type TermsChanged struct {
	Tiers      map[Tier]Terms // bounded by the tiers of two plans
	Thresholds Thresholds
}

// Follow decides to follow rules; nothing if the organization does. It
// fails with ErrUnknownTier where they lack one of its tiers.
func (b *Books) Follow(rules Rules, at time.Time) ([]Decision, error) {
	o := b.Organization
	changed, same := TermsChanged{Tiers: map[Tier]Terms{}, Thresholds: rules.Thresholds}, slices.Equal(rules.Thresholds, o.Usual)
	plans := Plans{o.Plans.At(at)}
	if next, scheduled := o.Plans.Next(at); scheduled {
		plans = append(plans, next)
	}
	for _, plan := range plans {
		terms, err := rules.Terms(plan.Tier)
		if err != nil {
			return nil, err
		}
		changed.Tiers[plan.Tier] = terms
		same = same && terms.same(plan.TierTerms)
	}
	if same {
		return nil, nil
	}
	return []Decision{changed}, nil
}

// FollowedBy reports whether the last plan of an organization and its
// usual thresholds are by these rules.
func (r Rules) FollowedBy(o Organization) bool {
	if len(o.Plans) == 0 {
		return true
	}
	last := o.Plans[len(o.Plans)-1]
	terms, err := r.Terms(last.Tier)
	return err == nil && terms.same(last.TierTerms) && slices.Equal(r.Thresholds, o.Usual)
}

func (d TermsChanged) decide(b *Books, cause Cause) error {
	o := &b.Organization
	o.Usual = d.Thresholds
	o.Plans = o.Plans.under(d.Tiers, calendar.Later(cause.At, o.Plans[0].From))
	return nil
}

// under returns the timeline in which the plan in force at an instant,
// from then on, and the scheduled one have these terms.
func (p Plans) under(tiers map[Tier]Terms, at time.Time) Plans {
	inForce, until := p.At(at), p.Until(at)
	if terms, ok := tiers[inForce.Tier]; ok && !terms.same(inForce.TierTerms) {
		inForce.From, inForce.TierTerms = at, terms
		until = p.Then(inForce, at)
	}
	next, scheduled := p.Next(at)
	if !scheduled {
		return until
	}
	if terms, ok := tiers[next.Tier]; ok {
		next.TierTerms = terms
	}
	return append(until, next)
}
