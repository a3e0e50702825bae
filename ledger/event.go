package ledger

import (
	"fmt"
	"time"
)

// An EventKind is the subject of an Event.
type EventKind uint8

// The kinds of events.
const (
	ThresholdReached EventKind = iota + 1
	QuotaExhausted
	QuotaRestored
	OverageBegun
	TierChanged
	GrantExpiring
	GrantHasExpired
	PeriodClosed
	BooksAdjusted
	StatementReady
	BudgetThresholdReached
	BudgetExhausted
	BudgetRestored
	eventKindsEnd
)

// EventKinds returns all kinds.
func EventKinds() (kinds []EventKind) {
	for kind := ThresholdReached; kind < eventKindsEnd; kind++ {
		kinds = append(kinds, kind)
	}
	return kinds
}

// An Event is to be published.
type Event struct {
	Kind         EventKind
	Organization string
	Book         Book // after the causing transfers; zero for an event about a grant
	Percent      int  // of a threshold
	Test         bool // of a test organization
	Cause        Cause

	Before, After Tier      // of a TierChanged
	Grant         Grant     // of an event about one
	Budget        Budget    // of an event about one, after its cause
	Subject       string    // id of a BooksAdjusted
	Amount        int64     // of a BooksAdjusted: bytes credited; negative: charged
	Of            time.Time // start of the corrected period; zero: the Book's
	Number        int64     // of the statement of a StatementReady
	Hash          Hash      // of that statement
}

// ID returns the event's id, the same for a repeated decision.
func (e Event) ID() string {
	start := e.Book.Period.Start.Format(time.DateOnly)
	switch e.Kind {
	case ThresholdReached:
		return fmt.Sprintf("%s/%s/threshold/%d", e.Organization, start, e.Percent)
	case QuotaExhausted:
		return fmt.Sprintf("%s/%s/exhausted/%s", e.Organization, start, e.Cause.Event)
	case QuotaRestored:
		return fmt.Sprintf("%s/%s/restored/%s", e.Organization, start, e.Cause.Event)
	case OverageBegun:
		return fmt.Sprintf("%s/%s/overage/%s", e.Organization, start, e.Cause.Event)
	case TierChanged:
		return fmt.Sprintf("%s/%s/tier/%s", e.Organization, start, e.Cause.Event)
	case GrantExpiring:
		return fmt.Sprintf("%s/grant/%s/expiring", e.Organization, e.Grant.ID)
	case GrantHasExpired:
		return fmt.Sprintf("%s/grant/%s/expired", e.Organization, e.Grant.ID)
	case PeriodClosed:
		return fmt.Sprintf("%s/%s/closed", e.Organization, start)
	case StatementReady:
		return fmt.Sprintf("%s/%s/statement", e.Organization, start)
	case BudgetThresholdReached:
		return fmt.Sprintf("%s/%s/budget/%s/%d/threshold/%d", e.Organization, start, e.Budget.Spender, e.Budget.Since, e.Percent)
	case BudgetExhausted:
		return fmt.Sprintf("%s/%s/budget/%s/exhausted/%s", e.Organization, start, e.Budget.Spender, e.Cause.Event)
	case BudgetRestored:
		return fmt.Sprintf("%s/%s/budget/%s/restored/%s", e.Organization, start, e.Budget.Spender, e.Cause.Event)
	default:
		return fmt.Sprintf("%s/%s/adjusted/%s", e.Organization, start, e.Subject)
	}
}
