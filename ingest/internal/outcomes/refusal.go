package outcomes

import "time"

// A Refusal is a request that a quota or budget did not cover,
// the last of Requests.
type Refusal struct {
	Organization string
	Project      string
	APIKey       string // its id
	Environment  string
	RequestID    string
	At           time.Time
	Bytes        int64 // of the request, as in Count
	Remaining    int64 // bytes of the quota or budget
	PeriodStart  time.Time
	Quota        int64 // or budget, of the period, as it is known here
	Since        int64 // of the account or budget: another one after a raise
	Exhausts     bool  // nothing more is accepted in the period with this Quota
	Requests     int64
	Reason       string // as in Count
}
