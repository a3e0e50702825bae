package architecture

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ledger"
)

// Ingest admits against the period that it derives itself once the published one is over; the ledger charges to the one
// that it derives. The two may not share code, so this holds them together: the same period for every anchor day, at
// every midnight of six years (two of them leap years) and at the moments beside it.
func TestPeriodsAgree(t *testing.T) {
	first, last := time.Date(2023, time.December, 31, 0, 0, 0, 0, time.UTC), time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
	for anchor := 1; anchor <= 31; anchor++ {
		for midnight := first; !midnight.After(last); midnight = midnight.AddDate(0, 0, 1) {
			for _, beside := range []time.Duration{-time.Nanosecond, 0, time.Nanosecond} {
				at := midnight.Add(beside)
				admits, charges := ingest.PeriodAt(at, anchor), ledger.PeriodAt(at, anchor)
				if !admits.Start.Equal(charges.Start) || !admits.End.Equal(charges.End) || !admits.Contains(at) || !charges.Contains(at) {
					t.Fatalf("anchor day %d at %s: ingest %s, ledger %s", anchor, at, admits, charges)
				}
			}
		}
	}
}
