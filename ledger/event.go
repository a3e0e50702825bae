package ledger

import (
	"fmt"
	"time"
)

// An EventKind is what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	ThresholdReached EventKind = iota + 1
	QuotaExhausted
	eventKindsEnd
)

// EventKinds are all of them.
func EventKinds() (kinds []EventKind) {
	for kind := ThresholdReached; kind < eventKindsEnd; kind++ {
		kinds = append(kinds, kind)
	}
	return kinds
}

// An Event is what others are to be informed of.
type Event struct {
	Kind         EventKind
	Organization string
	Book         Book // after the transfers that made it true
	Percent      int  // of a ThresholdReached
	Cause        Cause
}

// ID identifies an event: the same whenever it is decided again.
func (e Event) ID() string {
	start := e.Book.Period.Start.Format(time.DateOnly)
	if e.Kind == ThresholdReached {
		return fmt.Sprintf("%s/%s/threshold/%d", e.Organization, start, e.Percent)
	}
	return fmt.Sprintf("%s/%s/exhausted/%s", e.Organization, start, e.Cause.Event)
}
