package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

func onDay(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }

// Constant daily use continues, and is used up on the day that follows from it.
func TestForecastOfSteadyUse(t *testing.T) {
	now := onDay(20).Add(12 * time.Hour)
	f := NewForecast(slices.Repeat([]int64{10}, 28), calendar.PeriodAt(now, 1), 200, 47, now)
	if f.Method != ByWeekday || f.PerDay != 10 || f.Used != (Estimate{305, 305, 305}) {
		t.Errorf("forecast %+v", f)
	}
	if want := (Exhaustion{onDay(25), onDay(25), onDay(25)}); f.Runs != want { // 5, then 10 a day: 45 until the 24th, 55 until the 25th
		t.Errorf("used up %+v, want %+v", f.Runs, want)
	}
	if lasts := NewForecast(slices.Repeat([]int64{10}, 28), calendar.PeriodAt(now, 1), 200, 106, now); lasts.Runs != (Exhaustion{}) {
		t.Errorf("more than is needed is used up %+v", lasts.Runs)
	}
	if spent := NewForecast(slices.Repeat([]int64{10}, 28), calendar.PeriodAt(now, 1), 200, 0, now); spent.Runs.Latest != onDay(20) {
		t.Errorf("nothing is left, and is used up %+v", spent.Runs)
	}
}

// Weekdays are distinguished: idle weekends stay idle.
func TestForecastOfWeekdays(t *testing.T) {
	now := onDay(20) // a Friday
	var history []int64
	for day := now.AddDate(0, 0, -28); day.Before(now); day = day.AddDate(0, 0, 1) {
		bytes := int64(10)
		if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			bytes = 0
		}
		history = append(history, bytes)
	}
	f := NewForecast(history, calendar.PeriodAt(now, 1), 0, 15, now)
	if f.Runs.Expected != onDay(23) || f.Used.Expected != 70 || f.Used.Low != f.Used.High {
		t.Errorf("forecast %+v", f)
	}
}

// The more days vary, the wider the interval; it holds the expected value.
func TestForecastInterval(t *testing.T) {
	now := onDay(10)
	f := NewForecast([]int64{0, 20, 0, 20, 0, 20}, calendar.PeriodAt(now, 1), 0, 100, now)
	if f.Method != ByMean || f.Days != 6 || f.Used.Expected != 210 || f.Used.Low >= 210 || f.Used.High <= 210 {
		t.Errorf("forecast %+v", f)
	}
	if r := f.Runs; !r.Earliest.Before(r.Expected) || !r.Expected.Before(r.Latest) {
		t.Errorf("used up %+v", r)
	}
}

// Two days are too few.
func TestNoForecast(t *testing.T) {
	now := onDay(10)
	if f := NewForecast([]int64{5, 5}, calendar.PeriodAt(now, 1), 10, 1, now); f.Method != "" || f.Runs != (Exhaustion{}) || f.Used != (Estimate{}) {
		t.Errorf("forecast %+v", f)
	}
}

// A dry run matches the outcome in books and ingest.
func TestTrial(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	plan, soft := seeded(Plan{Tier: Indie}), seeded(Plan{Tier: Indie, Overage: true, OverageCap: 20})
	book := func(left, used, overage, pool int64) Book {
		b := Book{Period: calendar.PeriodAt(at, 1), Pool: pool}
		b.Balances[Allowance], b.Balances[Consumed], b.Balances[Overage] = left, used, overage
		return b
	}
	refused := book(70, 30, 0, 0)
	refused.Refused = 100
	for name, test := range map[string]struct {
		plan      Plan
		suspended bool
		book      Book
		bytes     int64
		want      DryRun
	}{
		"fits":                     {plan, false, book(70, 30, 0, 0), 69, DryRun{69, "", 69, 0, 1, false, Budget{}}},
		"takes the last":           {plan, false, book(70, 30, 0, 0), 70, DryRun{70, "", 70, 0, 0, true, Budget{}}},
		"takes more":               {plan, false, book(70, 30, 0, 0), 71, DryRun{71, RuleQuota, 0, 0, 70, true, Budget{}}},
		"with a grant":             {plan, false, book(0, 100, 0, 50), 40, DryRun{40, "", 40, 0, 10, false, Budget{}}},
		"overage":                  {soft, false, book(10, 90, 0, 0), 25, DryRun{25, "", 10, 15, 0, false, Budget{}}},
		"overage to its cap":       {soft, false, book(10, 90, 0, 0), 30, DryRun{30, "", 10, 20, 0, true, Budget{}}},
		"overage beyond its cap":   {soft, false, book(0, 100, 15, 0), 6, DryRun{6, RuleQuota, 0, 0, 0, true, Budget{}}},
		"suspended":                {plan, true, book(70, 30, 0, 0), 1, DryRun{1, RuleSuspended, 0, 0, 70, false, Budget{}}},
		"exhausted with some left": {plan, false, refused, 1, DryRun{1, RuleExhausted, 0, 0, 70, false, Budget{}}},
	} {
		o := Organization{ID: "acme", Plans: Plans{test.plan}, Suspended: test.suspended}
		if got := o.Try(test.book, test.bytes, at); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	o := Organization{ID: "acme", Plans: Plans{plan}}
	if resolution := smallTiers().ResolutionOf(o, book(70, 30, 0, 0), 75, at); resolution.Grant != 5 {
		t.Errorf("resolution %+v", resolution)
	}
}

// A budget refuses requests of its project or key alone, even within the quota.
func TestTrialUnderBudgets(t *testing.T) {
	fits := DryRun{Bytes: 30, Covered: 30, Remaining: 40}
	shop, keys := Budget{Spender: Spender{Project: "shop"}, Bytes: 50, Used: 20}, Budget{Spender: Spender{Key: "k"}, Bytes: 50, Used: 21}
	refused := Budget{Spender: Spender{Project: "shop"}, Bytes: 90, Used: 20, Refused: 90}
	none := DryRun{Bytes: 30, Rule: RuleQuota, Remaining: 7, Exhausts: true}
	for name, test := range map[string]struct {
		dryRun       DryRun
		budgets      []Budget
		project, key string
		want         DryRun
	}{
		"none":                        {fits, nil, "shop", "k", fits},
		"that of the project fits":    {fits, []Budget{shop, keys}, "shop", "other", fits},
		"that of the key does not":    {fits, []Budget{shop, keys}, "shop", "k", DryRun{Bytes: 30, Rule: RuleBudget, Remaining: 70, Exhausts: true, Budget: keys}},
		"it is exhausted":             {fits, []Budget{refused}, "shop", "k", DryRun{Bytes: 30, Rule: RuleBudget, Remaining: 70, Exhausts: true, Budget: refused}},
		"those of others":             {fits, []Budget{keys, refused}, "", "", fits},
		"the quota refuses it anyhow": {none, []Budget{keys}, "shop", "k", none},
	} {
		if got := test.dryRun.Under(test.budgets, test.project, test.key); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

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
