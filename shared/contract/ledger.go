package contract

import "time"

// ThresholdReached is a fact on weir.ledger.v1: once per
// organization, period and threshold.
type ThresholdReached struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	Percent      int       `json:"percent"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	Batch        string    `json:"batch"`          // the batch that crossed it
	At           time.Time `json:"at"`             // when that batch was accepted
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// QuotaExhausted is a fact on weir.ledger.v1: nothing remains of the period's
// quota, nor of the overage that is accepted.
type QuotaExhausted struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// QuotaRestored is a fact on weir.ledger.v1: what was exhausted is so no more,
// by a grant, another plan or the next period.
type QuotaRestored struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// OverageBegun is a fact on weir.ledger.v1: more than the quota is
// used from now on, which the plan accepts.
type OverageBegun struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// TierChanged is a fact on weir.ledger.v1: another tier is in force.
type TierChanged struct {
	Organization string    `json:"organization"`
	Before       string    `json:"before"`
	Tier         string    `json:"tier"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// GrantExpiring is a fact on weir.ledger.v1: what is left of a
// grant expires in a week.
type GrantExpiring struct {
	Organization string    `json:"organization"`
	Grant        string    `json:"grant"`
	Remaining    int64     `json:"remaining"`
	ExpiresAt    time.Time `json:"expires_at"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// GrantExpired is a fact on weir.ledger.v1: a grant has ended,
// and what was left of it with it.
type GrantExpired struct {
	Organization string    `json:"organization"`
	Grant        string    `json:"grant"`
	Expired      int64     `json:"expired"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// PeriodClosed is a fact on weir.ledger.v1: nothing is booked in a period
// any more, and this is what it came to.
type PeriodClosed struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Granted      int64     `json:"granted"`
	Consumed     int64     `json:"consumed"` // of what was granted
	Overage      int64     `json:"overage"`
	Expired      int64     `json:"expired"`
	Voided       int64     `json:"voided"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// Adjusted is a fact on weir.ledger.v1: what was charged is made
// good in an open period, by somebody's decision or because
// entries came after their period was closed.
type Adjusted struct {
	Organization  string     `json:"organization"`
	Adjustment    string     `json:"adjustment"`                // its id, or the event that came late
	Bytes         int64      `json:"bytes"`                     // given back, or below zero charged
	PeriodStart   time.Time  `json:"period_start"`              // where it is booked
	OfPeriodStart *time.Time `json:"of_period_start,omitempty"` // the period that was wrong
	At            time.Time  `json:"at"`
	Test          bool       `json:"test,omitempty"` // of an organization with which billing only rehearses
}

// StatementReady is a fact on weir.ledger.v1: the statement of a
// closed period can be read.
type StatementReady struct {
	Organization string    `json:"organization"`
	Statement    int64     `json:"statement"` // its number
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Used         int64     `json:"used"`    // in the period, whether anything covered it or not
	Overage      int64     `json:"overage"` // of that: covered by nothing
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of an organization with which billing only rehearses
}
