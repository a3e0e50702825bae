package calendar

import "time"

// A Period is the half-open span [Start, End) of one allowance, in UTC. It starts at midnight on
// the subscription's anchor day of a month, or on the last of a month without that day.
type Period struct {
	Start, End time.Time
}

// Contains reports whether t is in the period.
func (p Period) Contains(t time.Time) bool { return !t.Before(p.Start) && t.Before(p.End) }

// PeriodAt is the period that holds t. anchorDay is 1..31.
func PeriodAt(t time.Time, anchorDay int) Period {
	t = t.UTC()
	year, month := t.Year(), t.Month()
	if t.Before(anchorIn(year, month, anchorDay)) {
		month--
	}
	return Period{Start: anchorIn(year, month, anchorDay), End: anchorIn(year, month+1, anchorDay)}
}

// anchorIn is where a period starts in the given month; months outside of 1..12 belong to other
// years.
func anchorIn(year int, month time.Month, anchorDay int) time.Time {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return time.Date(last.Year(), last.Month(), min(max(anchorDay, 1), last.Day()), 0, 0, 0, 0, time.UTC)
}
