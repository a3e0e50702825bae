package grouping

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // so that a zone is known on every machine
)

// Hours are when an alert may be told: between two times of the day, on some
// days. The zero ones are always.
type Hours struct {
	Days []time.Weekday `json:"days,omitempty"` // on which they begin; none: each
	From int            `json:"from,omitempty"` // minute of the day
	To   int            `json:"to,omitempty"`   // not after From: of the next day
	Zone string         `json:"zone,omitempty"` // its IANA name; empty: UTC
}

// IsZero is for those that are always.
func (h Hours) IsZero() bool { return len(h.Days) == 0 && h.From == 0 && h.To == 0 && h.Zone == "" }

const minutesOfDay = 24 * 60

func (h Hours) check() error {
	if _, err := time.LoadLocation(h.Zone); err != nil || h.Zone == "Local" {
		return Invalid{"hours/time_zone", fmt.Sprintf("The time zone %q is unknown.", h.Zone), "Use an IANA name such as Europe/Berlin."}
	}
	for i, minute := range []int{h.From, h.To} {
		if minute < 0 || minute >= minutesOfDay {
			return Invalid{[]string{"hours/from", "hours/to"}[i], fmt.Sprintf("Minute %d is not within a day.", minute), "Use 00:00 to 23:59."}
		}
	}
	for i, day := range h.Days {
		if day < time.Sunday || day > time.Saturday || slices.Contains(h.Days[:i], day) {
			return Invalid{"hours/days", fmt.Sprintf("hours.days are %v.", h.Days), "Name each day once, mon to sun; none stands for all."}
		}
	}
	return nil
}

// Next is at, or when the hours begin after it.
func (h Hours) Next(at time.Time) time.Time {
	zone, err := time.LoadLocation(h.Zone)
	if err != nil { // it was known when the rule was checked
		zone = time.UTC
	}
	year, month, today := at.In(zone).Date()
	for day := today - 1; day <= today+7; day++ {
		on := func(minute int) time.Time { return time.Date(year, month, day, 0, minute, 0, 0, zone) }
		weekday := on(minutesOfDay / 2).Weekday() // where clocks change at midnight, that may be missing
		if len(h.Days) > 0 && !slices.Contains(h.Days, weekday) {
			continue
		}
		begin, end := on(h.From), on(h.To)
		if h.To <= h.From {
			end = on(h.To + minutesOfDay)
		}
		switch {
		case at.Before(begin):
			return begin.UTC()
		case at.Before(end):
			return at
		}
	}
	return at
}
