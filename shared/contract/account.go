package contract

import (
	"cmp"
	"time"

	"github.com/weirlog/weir/shared/contract/tier"
)

// States of an account.
const (
	AccountActive    = "active"
	AccountExhausted = "exhausted"
	AccountSuspended = "suspended"
)

// Account is the state of one organization's quota on weir.accounts.v1,
// keyed by organization.
type Account struct {
	Organization      string          `json:"organization"`
	Tier              string          `json:"tier"`
	RequestsPerMinute int             `json:"requests_per_minute"`
	AnchorDay         int             `json:"anchor_day"`                 // 1..31: the day of the month on which periods start
	PeriodStart       time.Time       `json:"period_start"`               // inclusive
	PeriodEnd         time.Time       `json:"period_end"`                 // exclusive
	Quota             int64           `json:"quota"`                      // bytes granted for this period
	NextQuota         int64           `json:"next_quota"`                 // bytes that a following period grants
	OverageCap        int64           `json:"overage_cap,omitempty"`      // accepted bytes beyond Quota
	NextOverageCap    int64           `json:"next_overage_cap,omitempty"` // bytes beyond NextQuota
	Used              int64           `json:"used"`                       // bytes charged in this period
	State             string          `json:"state"`
	Raises            int64           `json:"raises,omitempty"`         // raises of Quota and OverageCap in the period; 0: not counted
	RetentionDays     int             `json:"retention_days,omitempty"` // see Retention
	Counted           Positions       `json:"counted"`                  // all below these offsets of weir.logs.v1 is in Used
	Version           int64           `json:"version"`                  // grows with every change; an older one is ignored
	Budgets           []AccountBudget `json:"budgets,omitempty"`        // of projects and keys
}

// Retention returns for how many days new entries are kept. Accounts
// without it have their tier's default.
func (a Account) Retention() int { return cmp.Or(a.RetentionDays, tier.RetentionDays(a.Tier)) }

// An AccountBudget limits the bytes of one project or API key per
// period; one of Project and APIKey is empty. Each period starts unused.
type AccountBudget struct {
	Project   string `json:"project,omitempty"`
	APIKey    string `json:"api_key,omitempty"`   // its id
	Bytes     int64  `json:"bytes"`               // of each period
	Used      int64  `json:"used"`                // charged bytes accepted in this period
	Exhausted bool   `json:"exhausted,omitempty"` // these Bytes allow nothing more in this period
	Since     int64  `json:"since,omitempty"`     // the decision that set or raised it: refusals before it do not count
}

// AccountsCountedKey is the key of the marker on weir.accounts.v1. No
// organization has this id.
const AccountsCountedKey = "counted"

// AccountsCounted is the marker after every round of Accounts: the
// accounts before it include all below Counted, even if that changed
// none (a replay, a parked record).
type AccountsCounted struct {
	Counted Positions `json:"counted"`
}

// Positions maps a partition of weir.logs.v1 to its next offset to count.
type Positions map[int]int64
