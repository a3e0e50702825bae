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
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// QuotaExhausted is a fact on weir.ledger.v1: nothing remains of the
// period's quota, nor of its accepted overage.
type QuotaExhausted struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// QuotaRestored is a fact on weir.ledger.v1: an exhausted quota is
// usable again, by a grant, another plan or the next period.
type QuotaRestored struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// OverageBegun is a fact on weir.ledger.v1: usage exceeds the quota
// from now on, which the plan accepts.
type OverageBegun struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// TierChanged is a fact on weir.ledger.v1: another tier is in force.
type TierChanged struct {
	Organization string    `json:"organization"`
	Before       string    `json:"before"`
	Tier         string    `json:"tier"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// GrantExpiring is a fact on weir.ledger.v1: the rest of a grant
// expires in a week.
type GrantExpiring struct {
	Organization string    `json:"organization"`
	Grant        string    `json:"grant"`
	Remaining    int64     `json:"remaining"`
	ExpiresAt    time.Time `json:"expires_at"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// GrantExpired is a fact on weir.ledger.v1: a grant has ended, with its rest.
type GrantExpired struct {
	Organization string    `json:"organization"`
	Grant        string    `json:"grant"`
	Expired      int64     `json:"expired"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// PeriodClosed is a fact on weir.ledger.v1: nothing more is booked in a
// period; these are its totals.
type PeriodClosed struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Granted      int64     `json:"granted"`
	Consumed     int64     `json:"consumed"` // of what was granted
	Overage      int64     `json:"overage"`
	Expired      int64     `json:"expired"`
	Voided       int64     `json:"voided"`
	Overshoot    int64     `json:"overshoot"` // accepted beyond what the plan allows, which nobody owes
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// Adjusted is a fact on weir.ledger.v1: a charge is corrected in an
// open period, by a person's decision or because entries came after
// their period was closed.
type Adjusted struct {
	Organization  string     `json:"organization"`
	Adjustment    string     `json:"adjustment"`                // its id, or the late event's
	Bytes         int64      `json:"bytes"`                     // given back, or below zero charged
	PeriodStart   time.Time  `json:"period_start"`              // where it is booked
	OfPeriodStart *time.Time `json:"of_period_start,omitempty"` // the period that was wrong
	At            time.Time  `json:"at"`
	Test          bool       `json:"test,omitempty"` // of a test organization
}

// StatementReady is a fact on weir.ledger.v1: the statement of a
// closed period can be read.
type StatementReady struct {
	Organization string    `json:"organization"`
	Statement    int64     `json:"statement"` // its number
	Hash         string    `json:"hash"`      // SHA-256 of it and of all before, in hexadecimal
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Used         int64     `json:"used"`    // in the period, covered or not
	Overage      int64     `json:"overage"` // of that: not covered
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}
