package ledger

import (
	"math"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// Methods of forecasts.
const (
	ByWeekday = "weekday_mean" // the mean of the same weekday in the last four weeks
	ByMean    = "mean"         // the mean of the days that there are
)

const (
	// ForecastDays is how many complete days a forecast uses.
	ForecastDays = 28
	// ForecastConfidence is the probability of a forecast's interval,
	// if days are independent and vary as before.
	ForecastConfidence = 0.8

	minHistoryDays = 3      // of history that a forecast needs
	deviation      = 1.2816 // standard deviations that hold four of five
)

// An Estimate is a number of bytes with its interval.
type Estimate struct{ Low, Expected, High int64 }

// A Forecast is a period's expected use at past rates. Its method is
// empty where too little is known.
type Forecast struct {
	Method  string
	Days    int      // of history
	PerDay  int64    // their mean
	Used    Estimate // at the period's end
	Runs    Exhaustion
	Through time.Time // the period's end
}

// An Exhaustion is the day on which the allowance is used up; zero: not
// in the period.
type Exhaustion struct{ Earliest, Expected, Latest time.Time }

// NewForecast returns the forecast of a period at an instant. history
// has the bytes of complete days up to yesterday; left may still be used.
func NewForecast(history []int64, period calendar.Period, used, left int64, now time.Time) Forecast {
	f := Forecast{Days: len(history), Through: period.End}
	if len(history) < minHistoryDays {
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

// run projects the rest of the period day by day.
func (f *Forecast) run(rates [7]float64, spread float64, used, left int64, now time.Time) {
	today := now.UTC().Truncate(24 * time.Hour)
	var more, days float64
	for day := today; day.Before(f.Through); day = day.AddDate(0, 0, 1) {
		share := 1.0
		if day.Equal(today) {
			share = 1 - float64(now.Sub(today))/float64(24*time.Hour)
		}
		more, days = more+share*rates[weekdaysAhead(day, today)], days+share
		off := deviation * spread * math.Sqrt(days)
		setFirst(&f.Runs.Earliest, day, more+off, left)
		setFirst(&f.Runs.Expected, day, more, left)
		setFirst(&f.Runs.Latest, day, more-off, left)
		f.Used = Estimate{used + int64(max(0, more-off)), used + int64(more), used + int64(more+off)}
	}
}

// setFirst sets the first day on which nothing is left.
func setFirst(on *time.Time, day time.Time, more float64, left int64) {
	if on.IsZero() && more >= float64(left) {
		*on = day
	}
}

// weekdaysAhead returns how many weekdays a day is after today.
func weekdaysAhead(day, today time.Time) int { return int(day.Sub(today)/(24*time.Hour)) % 7 }

// ratesOf returns the expected bytes of each of the next seven days,
// today first, and their deviation.
func ratesOf(history []int64, method string) (rates [7]float64, spread float64) {
	var sums, counts [7]float64
	for i, bytes := range history {
		at := weekdayIndex(i, len(history))
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
		off := float64(bytes) - rates[weekdayIndex(i, len(history))]
		squares += off * off
	}
	return rates, math.Sqrt(squares / float64(len(history)-1))
}

// weekdayIndex returns how many weekdays a day of history is after today.
func weekdayIndex(i, days int) int { return (i + 6*days) % 7 }

func mean(history []int64) float64 {
	var sum float64
	for _, bytes := range history {
		sum += float64(bytes)
	}
	return sum / float64(len(history))
}

// Rules that refuse requests.
const (
	RuleSuspended = "suspended" // the organization can send nothing
	RuleExhausted = "exhausted" // an earlier request needed more than was left
	RuleQuota     = "quota"     // the request needs more than is left
	RuleBudget    = "budget"    // the request needs more than its budget has left
)

// A DryRun is the outcome of a request if sent now.
type DryRun struct {
	Bytes     int64
	Rule      string // that would refuse it; empty: accepted
	Covered   int64  // bytes covered by the allowance and grants
	Overage   int64  // uncovered bytes
	Remaining int64  // of the allowance and grants, afterwards
	Exhausts  bool   // afterwards nothing more is accepted, of its budget if that refused it
	Budget    Budget // the refusing budget; zero: none
}

// Try returns the outcome of an organization's request in the running
// period's book.
func (o Organization) Try(book Book, bytes int64, at time.Time) DryRun {
	plan, dryRun := o.Plans.At(at), DryRun{Bytes: bytes, Remaining: book.Remaining()}
	left := o.Admits(book, at)
	switch {
	case o.Suspended:
		dryRun.Rule = RuleSuspended
	case book.refuses(plan):
		dryRun.Rule = RuleExhausted
	case bytes > left:
		dryRun.Rule, dryRun.Exhausts = RuleQuota, true
	default:
		dryRun.Covered = min(bytes, book.Remaining())
		dryRun.Overage = bytes - dryRun.Covered
		dryRun.Remaining, dryRun.Exhausts = book.Remaining()-dryRun.Covered, bytes == left
	}
	return dryRun
}

// Under applies the period's budgets to a dry run for a project's and
// key's request: one may refuse it.
func (t DryRun) Under(budgets []Budget, project, key string) DryRun {
	if t.Rule != "" {
		return t
	}
	for _, budget := range budgets {
		if budget.spentBy(Cause{Project: project, Key: key}) && (budget.IsExhausted() || t.Bytes > budget.Remaining()) {
			return DryRun{Bytes: t.Bytes, Rule: RuleBudget, Remaining: t.Remaining + t.Covered, Exhausts: true, Budget: budget}
		}
	}
	return t
}

// Admits returns how many bytes ingest would still accept in the period.
func (o Organization) Admits(book Book, at time.Time) int64 {
	return max(0, book.limit(o.Plans.At(at))-book.Used())
}

// ResolutionOf returns the resolution for a request beyond what is left.
func (t Tiers) ResolutionOf(o Organization, book Book, bytes int64, at time.Time) Resolution {
	refusal := Refusal{Bytes: bytes, Remaining: o.Admits(book, at), Quota: book.limit(o.Plans.At(at)), Cause: Cause{At: at}}
	return t.Resolution(o, refusal)
}

// SimulatedPeriods is how many periods a simulation covers, with the running one.
const SimulatedPeriods = 12

// A SimulatedPeriod is a period under another plan, without grants. A
// day may be refused in part.
type SimulatedPeriod struct {
	Period  calendar.Period
	Used    int64 // actually
	Quota   int64 // of the plan; prorated for a short period
	Covered int64 // of what was used
	Overage int64
	Refused int64
	Runs    time.Time // first day (UTC) with a refusal; zero: none
}

// Simulate returns a period of an anchoring under the plan. days are
// the daily use, in order.
func (p Plan) Simulate(of Anchoring, period calendar.Period, days []DayCharge) SimulatedPeriod {
	simulated := SimulatedPeriod{Period: period, Quota: of.share(p.Terms().Quota, period)}
	for _, day := range days {
		if !period.Contains(day.Day) {
			continue
		}
		covered := min(day.Bytes, simulated.Quota-simulated.Covered)
		overage := min(day.Bytes-covered, p.overageAllowed()-simulated.Overage)
		simulated.Used, simulated.Covered, simulated.Overage = simulated.Used+day.Bytes, simulated.Covered+covered, simulated.Overage+overage
		if refused := day.Bytes - covered - overage; refused > 0 {
			simulated.Refused += refused
			if simulated.Runs.IsZero() {
				simulated.Runs = day.Day
			}
		}
	}
	return simulated
}

// LastPeriods returns the latest periods of an organization at an
// instant, the running one first, back to its first.
func (o Organization) LastPeriods(at time.Time, most int) (periods []calendar.Period) {
	for period := o.PeriodAt(at); len(periods) < most && period.End.After(o.Plans[0].From); {
		periods = append(periods, period)
		period = o.PeriodAt(period.Start.Add(-instant))
	}
	return periods
}
