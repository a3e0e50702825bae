package ledger

import (
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

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
