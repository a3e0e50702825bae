package grouping

import (
	"fmt"
	"time"
)

// MaxArchiveDays is the longest that a project can wait for errors of a group
// before it is archived.
const MaxArchiveDays = 365

// CheckArchiveDays returns what is wrong with the days without an error after
// which a group is archived; 0: it never is.
func CheckArchiveDays(days int) error {
	if days < 0 || days > MaxArchiveDays {
		return Invalid{"archive_after_days", fmt.Sprintf("Errors would be archived after %d days.", days),
			fmt.Sprintf("Use 1 to %d days, or 0 for never.", MaxArchiveDays)}
	}
	return nil
}

// QuietSince is the instant since when an unresolved group must have been
// quiet to be archived.
func QuietSince(days int, now time.Time) time.Time { return now.AddDate(0, 0, -days) }

// Quiet decides that an unresolved group is archived, as its last error
// happened so many days ago, and nobody has opened it since. The caller knows
// that none was accepted since then either.
func (s State) Quiet(last time.Time, version int64, days int, now time.Time) (d Decision, follows bool) {
	before := QuietSince(days, now)
	if days <= 0 || s.Status != Unresolved && s.Status != "" || s.Into != "" || version >= MaxDecisions || !last.Before(before) || !s.Since.Before(before) {
		return Decision{}, false
	}
	reason := fmt.Sprintf("It had no error for %s days.", thousands(days))
	if days == 1 {
		reason = "It had no error for a day."
	}
	return Decision{Kind: WasQuiet, At: now, Seen: last, Reason: reason}, true
}

// recurrence is the decision of the first error that shows that an archived
// group is not over: one that happened after its last one, or that was
// accepted since. Errors that are read again did neither.
func (s *State) recurrence(seen []Seen) (d Decision, found bool) {
	for _, kind := range seen {
		for _, at := range kind.returned(s) {
			if !found || at.Before(d.At) {
				d, found = Decision{Kind: WasReopened, At: at, Release: kind.Release, Environment: kind.Environment,
					Reason: "It happened" + in(kind) + " after it was archived."}, true
			}
		}
	}
	return d, found
}

// returned are instants of errors that an archived group had not had.
func (s *Seen) returned(of *State) (times []time.Time) {
	for _, micros := range s.Times {
		if at := time.UnixMicro(micros).UTC(); at.After(of.Seen) {
			times = append(times, at)
		}
	}
	for _, arrival := range s.Arrived {
		if arrival.At.After(of.Since) {
			times = append(times, arrival.At.UTC())
		}
	}
	return times
}

// recurs reports whether an error has opened an archived group again.
func (d Decision) recurs() bool { return d.Kind == WasReopened && d.Reason != "" }
