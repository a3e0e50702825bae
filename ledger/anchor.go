package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// An Anchor is the day of the month on which periods begin, from
// an instant on at which a period ends.
type Anchor struct {
	From time.Time
	Day  int // 1..31
}

// An Anchoring says when the periods of an organization begin.
type Anchoring struct {
	AnchorDay int      // the first, 1..31
	Anchors   []Anchor // those that followed it, in the order of their instants
}

// maxAnchors bounds a timeline: what was before is long closed.
const maxAnchors = 100

// PeriodAt is the organization's period that holds an instant.
// After a change of the anchor day the first period begins where
// the last one ends, and is shorter.
func (d Anchoring) PeriodAt(t time.Time) calendar.Period {
	period := calendar.PeriodAt(t, d.AnchorDay)
	for _, anchor := range d.Anchors {
		if t.Before(anchor.From) {
			break
		}
		if period = calendar.PeriodAt(t, anchor.Day); period.Start.Before(anchor.From) {
			period.Start = anchor.From
		}
	}
	return period
}

// AnchorDayAt is the anchor day in force at an instant.
func (d Anchoring) AnchorDayAt(t time.Time) int {
	day := d.AnchorDay
	for _, anchor := range d.Anchors {
		if !t.Before(anchor.From) {
			day = anchor.Day
		}
	}
	return day
}

// whole is the period of which one is a part.
func (d Anchoring) whole(part calendar.Period) time.Duration {
	whole := calendar.PeriodAt(part.End.Add(-instant), d.AnchorDayAt(part.Start))
	return whole.End.Sub(whole.Start)
}

// share is what of a quota a period has: all of it, or of a part of a
// period its part, rounded up to a byte.
func (d Anchoring) share(quota int64, of calendar.Period) int64 {
	return mulDivUp(quota, int64(of.End.Sub(of.Start)), int64(d.whole(of)))
}

// AnchorSet says on which day of the month periods begin from
// the end of the running one on.
type AnchorSet struct{ Anchor Anchor }

func (d AnchorSet) decide(b *Books, cause Cause) error {
	anchors := slices.DeleteFunc(slices.Clone(b.Organization.Anchors), func(a Anchor) bool { return a.From.After(cause.At) })
	if anchors = append(anchors, d.Anchor); len(anchors) > maxAnchors {
		b.Organization.AnchorDay, anchors = anchors[0].Day, anchors[1:]
	}
	b.Organization.Anchors = anchors
	return nil
}

// changeAnchor is what has to be decided for periods to begin on
// a day: nothing where they do.
func (b *Books) changeAnchor(day int, at time.Time) ([]Decision, error) {
	if day < 1 || day > 31 {
		return nil, Invalid{"anchor_day", fmt.Sprintf("The anchor day is %d.", day), "Use a day of the month, 1 to 31: shorter months have their last day instead."}
	}
	end := b.periodAt(at).End
	if b.Organization.AnchorDayAt(end) == day {
		return nil, nil
	}
	return []Decision{AnchorSet{Anchor{From: end, Day: day}}}, nil
}
