package ledger

import (
	"fmt"
	"math/bits"
	"slices"
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

// Thresholds are ascending percentages of an allowance that are
// announced when reached in a period. Above 100 they are overage.
type Thresholds []int

// Bounds of thresholds.
const (
	MaxThresholds = 10
	MaxThreshold  = 1000
)

// DefaultThresholds are the defaults.
func DefaultThresholds() Thresholds { return Thresholds{50, 80, 100} }

// Validate refuses thresholds out of bounds or order.
func (t Thresholds) Validate() error {
	if len(t) > MaxThresholds {
		return Invalid{"percents", fmt.Sprintf("There are %d thresholds.", len(t)), fmt.Sprintf("Use at most %d.", MaxThresholds)}
	}
	for i, percent := range t {
		if percent < 1 || percent > MaxThreshold || i > 0 && percent <= t[i-1] {
			return Invalid{"percents", fmt.Sprintf("The threshold %d is out of its bounds or order.", percent),
				fmt.Sprintf("Use whole numbers from 1 to %d, each larger than the one before.", MaxThreshold)}
		}
	}
	return nil
}

// crossed returns the thresholds above the highest announced that used
// has reached. Without an allowance there are none.
func (t Thresholds) crossed(announced int, used, allowance int64) (percents []int) {
	for _, percent := range t {
		if percent > announced && allowance > 0 && used >= mulDivUp(allowance, int64(percent), 100) {
			percents = append(percents, percent)
		}
	}
	return percents
}

// ThresholdsSet sets an organization's thresholds; nil: the installation's.
type ThresholdsSet struct{ Percents Thresholds }

// decide announces those that the running period has reached.
func (d ThresholdsSet) decide(b *Books, cause Cause) error {
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	b.Organization.Thresholds = d.Percents
	b.announce(book, *book, b.isExhausted(book, cause.At), cause)
	for _, budget := range b.Budgets.Kept {
		b.renew(budget, book.Period.Start, cause)
		b.announceBudget(budget, budget.IsExhausted(), cause)
	}
	return nil
}

// DecideFor decides an organization's own thresholds, or with nil the
// installation's; nothing if unchanged.
func (t Thresholds) DecideFor(o Organization) ([]Decision, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if own := o.Thresholds; (own == nil) == (t == nil) && slices.Equal(own, t) {
		return nil, nil
	}
	return []Decision{ThresholdsSet{t}}, nil
}

// ThresholdsOf returns an organization's own thresholds, or the
// installation's.
func ThresholdsOf(o Organization) Thresholds {
	if o.Thresholds != nil {
		return o.Thresholds
	}
	return o.Usual
}

// mulDivUp is a*b/c rounded up, without overflow; a and b are not
// negative, c is positive.
func mulDivUp(a, b, c int64) int64 {
	quotient, remainder := mulDiv(a, b, c)
	if remainder > 0 {
		quotient++
	}
	return quotient
}

func mulDiv(a, b, c int64) (quotient, remainder int64) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(high, low, uint64(c))
	return int64(q), int64(r)
}
