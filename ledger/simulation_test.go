package ledger

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// Use beyond a plan is overage up to its cap, and refused beyond, from
// a day on.
func TestSimulate(t *testing.T) {
	period := calendar.PeriodAt(onDay(5), 1)
	days := []DayCharge{{Day: onDay(1).AddDate(0, 0, -1), Bytes: 1000}, {Day: onDay(2), Bytes: 60}, {Day: onDay(3), Bytes: 60}, {Day: onDay(4), Bytes: 30}}
	for name, test := range map[string]struct {
		plan Plan
		want SimulatedPeriod
	}{
		"enough": {Plan{Quota: 150}, SimulatedPeriod{period, 150, 150, 150, 0, 0, time.Time{}}},
		"hard":   {Plan{Quota: 100}, SimulatedPeriod{period, 150, 100, 100, 0, 50, onDay(3)}},
		"soft":   {Plan{Quota: 100, Overage: true}, SimulatedPeriod{period, 150, 100, 100, 50, 0, time.Time{}}},
		"capped": {Plan{Quota: 100, Overage: true, OverageCap: 40}, SimulatedPeriod{period, 150, 100, 100, 40, 10, onDay(4)}},
	} {
		if got := test.plan.Simulate(Anchoring{AnchorDay: 1}, period, days); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// A period shortened by a new anchor day has a part of the quota, as its book.
func TestSimulateAPart(t *testing.T) {
	books := newBooks(Indie)
	perform(t, books, decide("10-15", AnchorSet{Anchor{From: date("11-01"), Day: 25}}), use("11-02", 10))
	book, err := books.At(date("11-02"))
	got := Plan{Quota: 100}.Simulate(books.Organization.Anchoring, book.Period, []DayCharge{{Day: date("11-02"), Bytes: 90}})
	if err != nil || got.Quota != book.Allowance() || got.Quota >= 90 || got.Refused != 90-got.Quota {
		t.Errorf("%+v, of the book %d, error %v", got, book.Allowance(), err)
	}
}

// An organization has no periods before its first.
func TestLastPeriods(t *testing.T) {
	o := Organization{Anchoring: Anchoring{AnchorDay: 31}, Plans: Plans{{From: time.Date(2027, 1, 31, 5, 0, 0, 0, time.UTC)}}}
	at := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	if all := o.LastPeriods(at, 12); len(all) != 3 || all[0].Start.Day() != 31 || all[2].Start.Month() != time.January {
		t.Errorf("periods %v", all)
	}
	if two := o.LastPeriods(at, 2); len(two) != 2 {
		t.Errorf("periods %v", two)
	}
}
