package outcomes

import "time"

// A Refusal is a request refused by a quota or budget, the last of Requests.
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
	Quota        int64 // or budget of the period, as this process has it
	Since        int64 // of the account or budget; changes with a raise
	Exhausts     bool  // the period accepts nothing more with this Quota
	Requests     int64
	Reason       string // as in Count
}
