package erasure

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/prune"
)

// Retention is how long modules remember deletions: 3 to 1200 months.
// Zero means the default.
type Retention struct {
	DeletionsMonths int `help:"For how many months it is known which organizations and projects were deleted, by their ids: longer than the log keeps records of them, and than a backup is restored." env:"WEIR_DELETIONS_MONTHS" default:"25"`
}

const (
	// DefaultMonths equals the ledger's retention of transfers.
	DefaultMonths = 25
	minMonths     = 3    // facts are kept for 30 days, parked records for 90
	maxMonths     = 1200 // a century: no backup is older
)

// Validate returns what is wrong.
func (r Retention) Validate() error {
	if r.DeletionsMonths != 0 && (r.DeletionsMonths < minMonths || r.DeletionsMonths > maxMonths) {
		return fmt.Errorf("WEIR_DELETIONS_MONTHS is %d: what was deleted is known for %d to %d months", r.DeletionsMonths, minMonths, maxMonths)
	}
	return nil
}

// Months returns how many months deletions are remembered.
func (r Retention) Months() int { return cmp.Or(r.DeletionsMonths, DefaultMonths) }

// Since returns the time from which on deletions are remembered.
func (r Retention) Since(clock func() time.Time) func() time.Time {
	return func() time.Time { return clock().AddDate(0, -r.Months(), 0) }
}

// Table returns the table of deletions, for a prune.Pruner.
func (r Retention) Table(clock func() time.Time) prune.Rows {
	return prune.Rows{
		Table: "erasures", Bound: fmt.Sprintf("ids for %d months after what they name was erased", r.Months()),
		Age: "published_at", Before: r.Since(clock),
	}
}
