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
