package ledger

import (
	"fmt"
	"time"
)

// A FactKind says what a Fact is about.
type FactKind uint8

// The kinds of facts.
const (
	ThresholdReached FactKind = iota + 1
	QuotaExhausted
)

// A Fact is news for others.
type Fact struct {
	Kind         FactKind
	Organization string
	Book         Book // after the transfers that made it true
	Percent      int  // of a ThresholdReached
	Cause        Cause
}

// ID identifies what a fact says: the same each time that it is said.
func (f Fact) ID() string {
	start := f.Book.Period.Start.Format(time.DateOnly)
	if f.Kind == ThresholdReached {
		return fmt.Sprintf("%s/%s/threshold/%d", f.Organization, start, f.Percent)
	}
	return fmt.Sprintf("%s/%s/exhausted/%s", f.Organization, start, f.Cause.Event)
}
