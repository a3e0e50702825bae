package ledger

import "errors"

// Rules are the installation's rules for all organizations.
type Rules struct {
	Tiers      Tiers
	Thresholds Thresholds // of organizations without their own
}

// Open is OpenBooks with these rules.
func (r Rules) Open(organization Organization, grants []Grant, books ...Book) *Books {
	opened := OpenBooks(organization, r.Tiers, grants, books...)
	opened.usual = r.Thresholds
	return opened
}

// Validate returns all faults of the rules.
func (r Rules) Validate() error { return errors.Join(r.Tiers.Validate(), r.Thresholds.Validate()) }

// ThresholdsOf returns an organization's own thresholds or the installation's.
func (r Rules) ThresholdsOf(o Organization) Thresholds {
	if o.Thresholds != nil {
		return o.Thresholds
	}
	return r.Thresholds
}
