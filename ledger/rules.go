package ledger

import "errors"

// Rules are what the installation has decided for all organizations.
type Rules struct {
	Tiers      Tiers
	Thresholds Thresholds // of organizations that have none of their own
}

// Open is OpenBooks by these rules.
func (r Rules) Open(organization Organization, grants []Grant, books ...Book) *Books {
	opened := OpenBooks(organization, r.Tiers, grants, books...)
	opened.usual = r.Thresholds
	return opened
}

// Validate joins what is wrong with the rules.
func (r Rules) Validate() error { return errors.Join(r.Tiers.Validate(), r.Thresholds.Validate()) }

// ThresholdsOf are an organization's own thresholds, or else
// those of the installation.
func (r Rules) ThresholdsOf(o Organization) Thresholds {
	if o.Thresholds != nil {
		return o.Thresholds
	}
	return r.Thresholds
}
