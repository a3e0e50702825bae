package contract

import "time"

// BudgetThresholdReached is a fact on weir.ledger.v1: once per budget, period
// and threshold. One of Project and APIKey is empty, as in the facts below.
type BudgetThresholdReached struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	APIKey       string    `json:"api_key,omitempty"` // its id
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Percent      int       `json:"percent"`
	Budget       int64     `json:"budget"`
	Used         int64     `json:"used"`
	Batch        string    `json:"batch,omitempty"` // the batch that crossed it; empty: a decision did
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// BudgetExhausted is a fact on weir.ledger.v1: the project's or key's
// requests are refused until the period ends or the budget is raised.
type BudgetExhausted struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	APIKey       string    `json:"api_key,omitempty"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Budget       int64     `json:"budget"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// BudgetRestored is a fact on weir.ledger.v1: an exhausted budget was
// raised, or the next period has begun.
type BudgetRestored struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	APIKey       string    `json:"api_key,omitempty"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Budget       int64     `json:"budget"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}
