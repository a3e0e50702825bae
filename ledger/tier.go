package ledger

import (
	"errors"
	"fmt"

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
