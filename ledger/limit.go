package ledger

import (
	"fmt"
	"time"
)

// A LimitReached says that there is as much of something as there may be.
type LimitReached struct {
	Limit int
	Text  string // with a place for the limit
}

func (l LimitReached) Error() string { return fmt.Sprintf(l.Text, l.Limit) }

// What an organization has as many of as it may.
var (
	tooManyGrants    = LimitReached{MaxGrants, "The organization has %d grants of which something is left, which is as many as it may. Void one first."}
	tooManyBudgets   = LimitReached{MaxBudgets, "An organization may have %d budgets. Remove one first."}
	tooManyDecisions = LimitReached{MaxDecisions, "There are %d decisions about the organization in this period, which is as many as there may be. " +
		"More can be made in the next one."}
)

// MaxDecisions bounds the decisions about an organization in a
// period: its stream, its grants, and its statement, which is
// made while others wait for the books.
const MaxDecisions = 10_000

// RoomForDecisions refuses so many decisions beyond MaxDecisions
// in the period of an instant. madeAt is when a decision was made,
// by its number; zero: it is kept no more.
func (o Organization) RoomForDecisions(more int, at time.Time, madeAt func(number int64) (time.Time, error)) error {
	first := o.Decisions + int64(more) - MaxDecisions // that makes the last one too many if it is of the period
	if first < 1 {
		return nil
	}
	period := o.BookedIn(at)
	if o.IsTest() { // what it decides is of the real month, whatever its clock says
		period = o.PeriodAt(at)
	}
	made, err := madeAt(first)
	if err != nil || made.Before(period.Start) {
		return err
	}
	return tooManyDecisions
}
