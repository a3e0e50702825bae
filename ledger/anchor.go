package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// An Anchor is the day of the month on which periods begin, from the
// end of a period on.
type Anchor struct {
	From time.Time
	Day  int // 1..31
}

// An Anchoring holds when an organization's periods begin.
type Anchoring struct {
	AnchorDay int      // the first, 1..31
	Anchors   []Anchor // later ones, by time
}

// maxAnchors bounds a timeline: older periods are long closed.
const maxAnchors = 100

// PeriodAt returns the organization's period of an instant. The first
// period after a change of the anchor day is shortened to start at the
// end of the last.
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

// AnchorDayAt returns the anchor day in force at an instant.
func (d Anchoring) AnchorDayAt(t time.Time) int {
	day := d.AnchorDay
	for _, anchor := range d.Anchors {
		if !t.Before(anchor.From) {
			day = anchor.Day
		}
	}
	return day
}

// whole returns the length of the full period of a part.
func (d Anchoring) whole(part calendar.Period) time.Duration {
	whole := calendar.PeriodAt(part.End.Add(-instant), d.AnchorDayAt(part.Start))
	return whole.End.Sub(whole.Start)
}

// share returns a period's quota: whole, or for a shortened period its
// part, rounded up to a byte.
func (d Anchoring) share(quota int64, of calendar.Period) int64 {
	return mulDivUp(quota, int64(of.End.Sub(of.Start)), int64(d.whole(of)))
}

// AnchorSet sets the anchor day from the end of the running period on.
type AnchorSet struct{ Anchor Anchor }

func (d AnchorSet) decide(b *Books, cause Cause) error {
	anchors := slices.DeleteFunc(slices.Clone(b.Organization.Anchors), func(a Anchor) bool { return a.From.After(cause.At) })
	if anchors = append(anchors, d.Anchor); len(anchors) > maxAnchors {
		b.Organization.AnchorDay, anchors = anchors[0].Day, anchors[1:]
	}
	b.Organization.Anchors = anchors
	return nil
}

// changeAnchor decides an anchor day; nothing if it is unchanged.
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
