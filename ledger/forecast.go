package ledger

import (
	"math"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// How a forecast is made.
const (
	ByWeekday = "weekday_mean" // the mean of the same weekday in the last four weeks
	ByMean    = "mean"         // the mean of the days that there are
)

const (
	// ForecastDays are the complete days that a forecast looks back on.
	ForecastDays = 28
	// ForecastConfidence is how probably use lies in a forecast's interval, if
	// days are independent and vary as before.
	ForecastConfidence = 0.8

	leastDays = 3      // of history: of less nothing follows
	deviation = 1.2816 // standard deviations that hold four of five
)

// An Estimate is a number of bytes with its interval.
type Estimate struct{ Low, Expected, High int64 }

// A Forecast is what a period comes to if use goes on as it was. Its
// method is zero where too little is known.
type Forecast struct {
	Method  string
	Days    int      // of history
	PerDay  int64    // the mean of these
	Used    Estimate // at the period's end
	Runs    Exhaustion
	Through time.Time // the period's end
}

// An Exhaustion is on which day the allowance is used up; zero
// where it lasts until the period's end.
type Exhaustion struct{ Earliest, Expected, Latest time.Time }

// NewForecast makes the forecast of a period at an instant. history has the
// bytes of complete days up to yesterday; left may still be used.
func NewForecast(history []int64, period calendar.Period, used, left int64, now time.Time) Forecast {
	f := Forecast{Days: len(history), Through: period.End}
	if len(history) < leastDays {
		return f
	}
	f.Method = ByMean
	if len(history) == ForecastDays {
		f.Method = ByWeekday
	}
	rates, spread := ratesOf(history, f.Method)
	f.PerDay = int64(math.Round(mean(history)))
	f.run(rates, spread, used, left, now)
	return f
}

// run lets the rest of the period happen, day by day.
func (f *Forecast) run(rates [7]float64, spread float64, used, left int64, now time.Time) {
	today := now.UTC().Truncate(24 * time.Hour)
	var more, days float64
	for day := today; day.Before(f.Through); day = day.AddDate(0, 0, 1) {
		share := 1.0
		if day.Equal(today) {
			share = 1 - float64(now.Sub(today))/float64(24*time.Hour)
		}
		more, days = more+share*rates[weeksDay(day, today)], days+share
		off := deviation * spread * math.Sqrt(days)
		reach(&f.Runs.Earliest, day, more+off, left)
		reach(&f.Runs.Expected, day, more, left)
		reach(&f.Runs.Latest, day, more-off, left)
		f.Used = Estimate{used + int64(max(0, more-off)), used + int64(more), used + int64(more+off)}
	}
}

// reach notes the first day on which nothing is left.
func reach(on *time.Time, day time.Time, more float64, left int64) {
	if on.IsZero() && more >= float64(left) {
		*on = day
	}
}

// weeksDay is how many days of the week a day is behind today.
func weeksDay(day, today time.Time) int { return int(day.Sub(today)/(24*time.Hour)) % 7 }

// ratesOf are the bytes expected of each of the next seven days,
// today first, and their deviation.
func ratesOf(history []int64, method string) (rates [7]float64, spread float64) {
	var sums, counts [7]float64
	for i, bytes := range history {
		at := placeOf(i, len(history))
		sums[at], counts[at] = sums[at]+float64(bytes), counts[at]+1
	}
	for at := range rates {
		rates[at] = mean(history)
		if method == ByWeekday {
			rates[at] = sums[at] / counts[at]
		}
	}
	var squares float64
	for i, bytes := range history {
		off := float64(bytes) - rates[placeOf(i, len(history))]
		squares += off * off
	}
	return rates, math.Sqrt(squares / float64(len(history)-1))
}

// placeOf is how many days of the week a day of history is behind today.
func placeOf(i, days int) int { return (i + 6*days) % 7 }

func mean(history []int64) float64 {
	var sum float64
	for _, bytes := range history {
		sum += float64(bytes)
	}
	return sum / float64(len(history))
}
