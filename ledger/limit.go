package ledger

import (
	"fmt"
	"time"
)

// A LimitReached is the error for a reached limit.
type LimitReached struct {
	Limit int
	Text  string // with a place for the limit
}

func (l LimitReached) Error() string { return fmt.Sprintf(l.Text, l.Limit) }

// The limits of an organization.
var (
	tooManyGrants    = LimitReached{MaxGrants, "The organization has %d grants of which something is left, which is as many as it may. Void one first."}
	tooManyBudgets   = LimitReached{MaxBudgets, "An organization may have %d budgets. Remove one first."}
	tooManyDecisions = LimitReached{MaxDecisions, "There are %d decisions about the organization in this period, which is as many as there may be. " +
		"More can be made in the next one."}
)

// MaxDecisions bounds an organization's decisions in a period, and so
// its stream, its grants and its statement, which is made while others
// wait for the books.
const MaxDecisions = 10_000

// RoomForDecisions refuses more decisions than MaxDecisions in the
// period of an instant. madeAt returns a decision's time by its number;
// zero: it is gone.
func (o Organization) RoomForDecisions(more int, at time.Time, madeAt func(number int64) (time.Time, error)) error {
	first := o.Decisions + int64(more) - MaxDecisions // if it is of the period, the last new one is too many
	if first < 1 {
		return nil
	}
	period := o.BookedIn(at)
	if o.IsTest() { // tests use the real month, not their clock
		period = o.PeriodAt(at)
	}
	made, err := madeAt(first)
	if err != nil || made.Before(period.Start) {
		return err
	}
	return tooManyDecisions
}
