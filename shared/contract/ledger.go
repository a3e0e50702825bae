package contract

import "time"

// ThresholdReached is a fact on weir.ledger.v1: once per organization, period and threshold.
type ThresholdReached struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	Percent      int       `json:"percent"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	Batch        string    `json:"batch"` // the batch that crossed it
	At           time.Time `json:"at"`    // when that batch was accepted
}

// QuotaExhausted is a fact on weir.ledger.v1: nothing remains of the period's quota.
type QuotaExhausted struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
}
