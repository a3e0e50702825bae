package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/contract/tier"
)

// A Tier is what an organization subscribes to.
type Tier string

// The tiers.
const (
	Indie        Tier = tier.Indie
	Bootstrapper Tier = tier.Bootstrapper
	Compliance   Tier = tier.Compliance
	Scale        Tier = tier.Scale
)

const gibibyte = int64(1) << 30

// Tiers holds the terms of every tier.
type Tiers map[Tier]Terms

// DefaultTiers are the default terms.
func DefaultTiers() Tiers {
	return Tiers{
		Indie:        {Quota: 1 * gibibyte, RequestsPerMinute: 60, RetentionDays: tier.RetentionDays(tier.Indie)},
		Bootstrapper: {Quota: 10 * gibibyte, RequestsPerMinute: 300, RetentionDays: tier.RetentionDays(tier.Bootstrapper)},
		Compliance:   {Quota: 50 * gibibyte, RequestsPerMinute: 600, RetentionDays: tier.RetentionDays(tier.Compliance)},
		Scale:        {Quota: 500 * gibibyte, RequestsPerMinute: 1800, RetentionDays: tier.RetentionDays(tier.Scale)},
	}
}

// ErrUnknownTier is the error for a tier without terms.
var ErrUnknownTier = errors.New("unknown tier")

// Terms returns the terms of a tier, or ErrUnknownTier.
func (t Tiers) Terms(of Tier) (Terms, error) {
	terms, ok := t[of]
	if !ok {
		return Terms{}, fmt.Errorf("cannot find the terms of tier %q: %w", of, ErrUnknownTier)
	}
	return terms, nil
}

// Validate returns all faults of the terms.
func (t Tiers) Validate() error {
	var errs []error
	for of, terms := range t {
		if terms.Quota < 1 || terms.Quota > MaxGrant {
			errs = append(errs, fmt.Errorf("tier %q: quota %d is outside 1..%d bytes", of, terms.Quota, MaxGrant))
		}
		if terms.RequestsPerMinute < 1 {
			errs = append(errs, fmt.Errorf("tier %q: %d requests per minute is below 1", of, terms.RequestsPerMinute))
		}
		if terms.RetentionDays < 1 || terms.RetentionDays > tier.MaxRetentionDays {
			errs = append(errs, fmt.Errorf("tier %q: a retention of %d days is outside 1..%d", of, terms.RetentionDays, tier.MaxRetentionDays))
		}
	}
	return errors.Join(errs...)
}

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

// Rules are the installation's settings for all organizations. They
// only seed decisions, each of which keeps what it was made with: books
// follow from the log and the decisions alone.
type Rules struct {
	Version    int64 // grows with each change; 0: not recorded
	Tiers      Tiers
	Thresholds Thresholds // of organizations without their own
}

// Validate returns all faults of the rules.
func (r Rules) Validate() error { return errors.Join(r.Tiers.Validate(), r.Thresholds.Validate()) }

// Terms returns the terms of a tier, or ErrUnknownTier.
func (r Rules) Terms(of Tier) (Terms, error) {
	terms, err := r.Tiers.Terms(of)
	terms.Version = r.Version
	return terms, err
}

// Seed returns a plan with the terms of its tier, or ErrUnknownTier.
func (r Rules) Seed(plan Plan) (seeded Plan, err error) {
	plan.TierTerms, err = r.Terms(plan.Tier)
	return plan, err
}

// Start decides an organization's first plan; nothing where it has one.
// It fails with ErrUnknownTier.
func (r Rules) Start(o Organization, plan Plan) ([]Decision, error) {
	if !o.Provisional() {
		return nil, nil
	}
	plan, err := r.Seed(plan)
	if err != nil {
		return nil, err
	}
	return []Decision{PlanStarted{Plan: plan, Opened: o.Opened, Thresholds: r.Thresholds}}, nil
}

// Follow decides that an organization follows the rules; nothing if it does. It
// fails with ErrUnknownTier where they lack one of its tiers.
func (r Rules) Follow(o Organization, at time.Time) ([]Decision, error) {
	changed, same := TermsChanged{Tiers: map[Tier]Terms{}, Thresholds: r.Thresholds}, slices.Equal(r.Thresholds, o.Usual)
	plans := Plans{o.Plans.At(at)}
	if next, scheduled := o.Plans.Next(at); scheduled {
		plans = append(plans, next)
	}
	for _, plan := range plans {
		terms, err := r.Terms(plan.Tier)
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

// A Retention is how many months books, transfers with usage by day,
// and usage by hour are kept. Older transfers are sums by period, as
// long as the book.
type Retention struct{ Hours, Transfers, Books int }

// DefaultRetention keeps transfers for two years, to compare with the
// year before, and books for as long as accounting law requires.
func DefaultRetention() Retention { return Retention{Hours: 3, Transfers: 25, Books: 120} }

// ErrNotKept is the error for an instant that is no longer kept.
var ErrNotKept = errors.New("that is no longer kept")

// minTransferMonths are the months that the running and the last period
// may reach back.
const minTransferMonths = 3

// Validate returns the faults of the retention.
func (r Retention) Validate() error {
	if r.Transfers < minTransferMonths || r.Books < r.Transfers {
		return fmt.Errorf("transfers for %d months and books for %d: transfers need at least %d, and books as many as transfers",
			r.Transfers, r.Books, minTransferMonths)
	}
	if r.Hours < 1 || r.Hours > r.Transfers {
		return fmt.Errorf("usage by hour for %d months: it needs at least 1, and at most the %d of transfers", r.Hours, r.Transfers)
	}
	return nil
}

// HoursSince returns since when usage by hour is kept.
func (r Retention) HoursSince(now time.Time) time.Time { return monthsBefore(now, r.Hours) }

// TransfersSince returns the first day with all transfers.
func (r Retention) TransfersSince(now time.Time) time.Time { return monthsBefore(now, r.Transfers) }

// ChargesSince returns since when the transfers of all logs are kept:
// late charges count from the start of a period.
func (r Retention) ChargesSince(now time.Time) time.Time { return monthsBefore(now, r.Transfers-1) }

// BooksSince returns since when books are kept: earlier ones are removed.
func (r Retention) BooksSince(now time.Time) time.Time { return monthsBefore(now, r.Books) }

func monthsBefore(now time.Time, months int) time.Time {
	year, month, day := now.UTC().Date()
	return time.Date(year, month-time.Month(months), day, 0, 0, 0, 0, time.UTC)
}
