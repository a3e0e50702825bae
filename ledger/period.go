package ledger

import "time"

// DefaultAnchorDay makes periods calendar months.
const DefaultAnchorDay = 1

// A Period is the half-open span of time [Start, End) that one allowance is for, in UTC. It starts on the
// subscription's anchor day of a month, at midnight.
type Period struct {
	Start, End time.Time
}

// PeriodAt is the period that holds t. In a month that has no such day the anchor is the month's last day.
func PeriodAt(t time.Time, anchorDay int) Period {
	t = t.UTC()
	year, month := t.Year(), t.Month()
	if t.Before(anchorIn(year, month, anchorDay)) {
		month--
	}
	return Period{Start: anchorIn(year, month, anchorDay), End: anchorIn(year, month+1, anchorDay)}
}

// Contains tells whether t lies in the period.
func (p Period) Contains(t time.Time) bool {
	return !t.Before(p.Start) && t.Before(p.End)
}

// anchorIn is the midnight at which a period starts in the given month; months outside 1..12 run into other years.
func anchorIn(year int, month time.Month, anchorDay int) time.Time {
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	days := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(anchorDay, days)-1)
}
