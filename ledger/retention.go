package ledger

import (
	"errors"
	"fmt"
	"time"
)

// A Retention is how many months books, transfers with usage by day,
// and usage by hour are kept. Older transfers are sums by period, as
// long as the book.
type Retention struct{ Hours, Transfers, Books int }

// DefaultRetention keeps transfers for two years, to compare with the
// year before, and books for as long as accounting law requires.
func DefaultRetention() Retention { return Retention{Hours: 3, Transfers: 25, Books: 120} }

// ErrNotKept is the error for an instant that is no longer kept.
var ErrNotKept = errors.New("that is no longer kept")

// minTransferMonths are the months that the running and the last period
// may reach back.
const minTransferMonths = 3

// Validate returns the faults of the retention.
func (r Retention) Validate() error {
	if r.Transfers < minTransferMonths || r.Books < r.Transfers {
		return fmt.Errorf("transfers for %d months and books for %d: transfers need at least %d, and books as many as transfers",
			r.Transfers, r.Books, minTransferMonths)
	}
	if r.Hours < 1 || r.Hours > r.Transfers {
		return fmt.Errorf("usage by hour for %d months: it needs at least 1, and at most the %d of transfers", r.Hours, r.Transfers)
	}
	return nil
}

// HoursSince returns since when usage by hour is kept.
func (r Retention) HoursSince(now time.Time) time.Time { return monthsBefore(now, r.Hours) }

// TransfersSince returns the first day with all transfers.
func (r Retention) TransfersSince(now time.Time) time.Time { return monthsBefore(now, r.Transfers) }

// ChargesSince returns since when the transfers of all logs are kept:
// late charges count from the start of a period.
func (r Retention) ChargesSince(now time.Time) time.Time { return monthsBefore(now, r.Transfers-1) }

// BooksSince returns since when books are kept: earlier ones are removed.
func (r Retention) BooksSince(now time.Time) time.Time { return monthsBefore(now, r.Books) }

func monthsBefore(now time.Time, months int) time.Time {
	year, month, day := now.UTC().Date()
	return time.Date(year, month-time.Month(months), day, 0, 0, 0, 0, time.UTC)
}
