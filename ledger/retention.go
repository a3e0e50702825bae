package ledger

import (
	"errors"
	"fmt"
	"time"
)

// A Retention is the months for which books, transfers with the
// usage by day, and the usage by hour are kept. Older transfers
// are sums by period, as long as the book.
type Retention struct{ Hours, Transfers, Books int }

// DefaultRetention keeps the transfers of two years, to compare with a year
// before, and books for as long as accounting law wants.
func DefaultRetention() Retention { return Retention{Hours: 3, Transfers: 25, Books: 120} }

// ErrNotKept is the error for what was so long ago that it is not kept any more.
var ErrNotKept = errors.New("that is not kept any more")

// leastTransfers are the months that a running period, and the
// one that has just ended, may reach back.
const leastTransfers = 3

// Validate returns what is wrong with the retention.
func (r Retention) Validate() error {
	if r.Transfers < leastTransfers || r.Books < r.Transfers {
		return fmt.Errorf("transfers for %d months and books for %d: transfers need at least %d, and books as many as transfers",
			r.Transfers, r.Books, leastTransfers)
	}
	if r.Hours < 1 || r.Hours > r.Transfers {
		return fmt.Errorf("usage by hour for %d months: it needs at least 1, and at most the %d of transfers", r.Hours, r.Transfers)
	}
	return nil
}

// HoursSince is since when usage is kept by hour.
func (r Retention) HoursSince(now time.Time) time.Time { return monthsBefore(now, r.Hours) }

// TransfersSince is from which day on all transfers are kept.
func (r Retention) TransfersSince(now time.Time) time.Time { return monthsBefore(now, r.Transfers) }

// ChargesSince is since when all transfers are kept of what was in the log
// then: late charges count from the beginning of a period.
func (r Retention) ChargesSince(now time.Time) time.Time { return monthsBefore(now, r.Transfers-1) }

// BooksSince is since when books are kept: those that ended before go.
func (r Retention) BooksSince(now time.Time) time.Time { return monthsBefore(now, r.Books) }

func monthsBefore(now time.Time, months int) time.Time {
	year, month, day := now.UTC().Date()
	return time.Date(year, month-time.Month(months), day, 0, 0, 0, 0, time.UTC)
}
