package calendar

import "time"

// A Period is the half-open span [Start, End) of one allowance, in UTC.
// It starts at midnight on the subscription's anchor day of a month, or
// on the last day of a month without it.
type Period struct {
	Start, End time.Time
}

// Contains reports whether t is in the period.
func (p Period) Contains(t time.Time) bool { return !t.Before(p.Start) && t.Before(p.End) }

// PeriodAt returns the period that contains t. anchorDay is 1..31.
func PeriodAt(t time.Time, anchorDay int) Period {
	t = t.UTC()
	year, month, _ := t.Date()
	start := anchorIn(year, month, anchorDay)
	if t.Before(start) {
		return Period{Start: anchorIn(year, month-1, anchorDay), End: start}
	}
	return Period{Start: start, End: anchorIn(year, month+1, anchorDay)}
}

// anchorIn returns the start of a period in the given month; months
// outside of 1..12 belong to other years.
func anchorIn(year int, month time.Month, anchorDay int) time.Time {
	if 1 <= anchorDay && anchorDay <= 28 {
		return time.Date(year, month, anchorDay, 0, 0, 0, 0, time.UTC)
	}
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return time.Date(last.Year(), last.Month(), min(max(anchorDay, 1), last.Day()), 0, 0, 0, 0, time.UTC)
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
