package ledger

import (
	"fmt"
	"math/bits"
	"slices"
)

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
	for _, budget := range b.Budgets {
		b.renew(budget, book.Period.Start, cause)
		b.announceBudget(budget, budget.IsExhausted(), cause)
	}
	return nil
}

// SetThresholds decides an organization's own thresholds, or with nil
// the installation's; nothing if unchanged.
func (b *Books) SetThresholds(percents Thresholds) ([]Decision, error) {
	if err := percents.Validate(); err != nil {
		return nil, err
	}
	if own := b.Organization.Thresholds; (own == nil) == (percents == nil) && slices.Equal(own, percents) {
		return nil, nil
	}
	return []Decision{ThresholdsSet{percents}}, nil
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
