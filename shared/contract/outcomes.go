package contract

import "time"

// Outcomes of a request to ingest.
const (
	OutcomeAccepted      = "accepted"
	OutcomeRejected      = "rejected"       // by its sender's fault; the reason is the answer's code
	OutcomeRateLimited   = "rate_limited"   // the reason is the level of the limit
	OutcomeQuotaExceeded = "quota_exceeded" // the reason is empty, ReasonSuspended, or the budget
	OutcomeOverloaded    = "overloaded"     // by Weir's fault, to be sent again; the reason is the answer's code
)

// ReasonSuspended means that the organization may not send anything.
const ReasonSuspended = "suspended"

// The budget of the project, or of the key, does not cover the request.
const (
	ReasonProjectBudget = "project_budget"
	ReasonKeyBudget     = "key_budget"
)

// Outcomes returns all outcomes.
func Outcomes() []string {
	return []string{OutcomeAccepted, OutcomeRejected, OutcomeRateLimited, OutcomeQuotaExceeded, OutcomeOverloaded}
}

// RequestsCounted is a fact on weir.outcomes.v1, keyed by Organization.
// It counts the outcomes of an organization's requests at one process
// of ingest since its last such record. The counts of all records add
// up; a record published twice has the same Process and Sequence, and
// counts once. A process that dies loses what it has not published.
// Charges follow weir.logs.v1, not these counts.
type RequestsCounted struct {
	Organization string         `json:"organization"`
	Process      string         `json:"process"`  // a run of ingest
	Sequence     int64          `json:"sequence"` // grows with the process's records of an organization, perhaps by more than one
	From         time.Time      `json:"from"`     // when the first of the requests ended
	To           time.Time      `json:"to"`       // none ended later
	Counts       []RequestCount `json:"counts"`
}

// A RequestCount counts a key's requests with the same outcome. With
// too many keys, project, key and environment are absent.
type RequestCount struct {
	Project     string `json:"project,omitempty"`
	APIKey      string `json:"api_key,omitempty"` // its id
	Environment string `json:"environment,omitempty"`
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason,omitempty"`
	Requests    int64  `json:"requests"`
	Entries     int64  `json:"entries"`               // as far as read
	Bytes       int64  `json:"bytes"`                 // of entries as charged; of requests refused before, received or announced bytes
	KeyInBody   int64  `json:"key_in_body,omitempty"` // of Requests: with the key in the body, which is deprecated
}

// QuotaRefused is a fact on weir.outcomes.v1, keyed by Organization: the
// quota did not cover a request. A key's first refusal is published at
// once, later ones are gathered for a while into one fact about the last.
type QuotaRefused struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	Environment  string    `json:"environment"`
	RequestID    string    `json:"request_id"`
	At           time.Time `json:"at"`
	Bytes        int64     `json:"bytes"`     // of the request, as in RequestCount
	Remaining    int64     `json:"remaining"` // bytes left of the quota, or of the budget that Reason names
	PeriodStart  time.Time `json:"period_start"`
	Quota        int64     `json:"quota"`            // or budget, of the period, as ingest knew it
	Since        int64     `json:"since,omitempty"`  // Raises of the account, or Since of the budget; 0: not known
	Exhausts     bool      `json:"exhausts"`         // this Quota allows nothing more in the period, however small
	Requests     int64     `json:"requests"`         // refusals since the last fact; only the last is described
	Reason       string    `json:"reason,omitempty"` // as in RequestCount
}
