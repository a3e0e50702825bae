package ledger

import (
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

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
