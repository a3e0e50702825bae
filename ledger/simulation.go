package ledger

import (
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// SimulatedPeriods are how many periods a simulation looks back
// on, the running one among them.
const SimulatedPeriods = 12

// A SimulatedPeriod is what a period would have come to under a plan, without
// grants. Of a day a part may be refused.
type SimulatedPeriod struct {
	Period  calendar.Period
	Used    int64 // as it was
	Quota   int64 // of the plan; of a part of a period, that part of it
	Covered int64 // of what was used
	Overage int64
	Refused int64
	Runs    time.Time // the day (UTC) from which on something would have been refused; zero: none
}

// Simulate finds what a period of an anchoring would have come to. days are what
// was used on each, in their order.
func (p Plan) Simulate(terms Terms, of Anchoring, period calendar.Period, days []DayCharge) SimulatedPeriod {
	simulated := SimulatedPeriod{Period: period, Quota: of.share(terms.Quota, period)}
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

// LastPeriods are the latest periods of an organization at an instant,
// the running one first, back to its first.
func (o Organization) LastPeriods(at time.Time, most int) (periods []calendar.Period) {
	for period := o.PeriodAt(at); len(periods) < most && period.End.After(o.Plans[0].From); {
		periods = append(periods, period)
		period = o.PeriodAt(period.Start.Add(-instant))
	}
	return periods
}
