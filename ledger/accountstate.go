package ledger

import (
	"fmt"
	"time"
)

// An AccountState is what an organization may send: what other services need of its books.
type AccountState struct {
	Organization      Organization
	Book              Book // of the latest period
	Tier              Tier
	RequestsPerMinute int
	RetentionDays     int   // of what is accepted now
	NextQuota         int64 // of the period after Book's
	Version           int64 // grows with every change
}

// AccountState is the state of an organization at an instant.
func (t Tiers) AccountState(o Organization, book Book, version int64, at time.Time) (AccountState, error) {
	tier := o.Plans.At(at)
	terms, err := t.Terms(tier)
	if err != nil {
		return AccountState{}, fmt.Errorf("organization %q: %w", o.ID, err)
	}
	next, err := t.Terms(o.Plans.At(book.Period.End))
	if err != nil {
		return AccountState{}, fmt.Errorf("organization %q: %w", o.ID, err)
	}
	return AccountState{
		Organization: o, Book: book, Tier: tier, RequestsPerMinute: terms.RequestsPerMinute, RetentionDays: terms.RetentionDays,
		NextQuota: next.Quota, Version: version,
	}, nil
}
