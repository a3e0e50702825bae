package ledger

import "errors"

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
