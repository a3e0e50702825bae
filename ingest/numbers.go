package ingest

import (
	"math"
	"strconv"
)

// Numbers sums up numbers, and estimates their quantiles within 2 % of
// the value (Masson, Rim and Lee, "DDSketch", VLDB 2019). Where the largest
// is more than 20,000 times the smallest, the estimates of small ones are
// too high. A nil *Numbers has none.
type Numbers struct {
	Count    int64
	Sum      float64
	Min, Max float64
	below    bins // of the sizes of negative numbers
	zeros    int64
	above    bins
}

const (
	gamma    = 1.0408 // (1 + 2 %) / (1 - 2 %)
	smallest = 1e-300 // what is closer to 0 counts as 0
	maxBins  = 256
)

// Add takes a finite number.
func (n *Numbers) Add(number float64) {
	if n.Count == 0 {
		n.Min, n.Max = number, number
	}
	n.Count++
	n.Sum = finite(n.Sum + number)
	n.Min, n.Max = min(n.Min, number), max(n.Max, number)
	switch {
	case number >= smallest:
		n.above.add(binOf(number), 1)
	case number <= -smallest:
		n.below.add(binOf(-number), 1)
	default:
		n.zeros++
	}
}

// Merge adds the numbers of others.
func (n *Numbers) Merge(others *Numbers) {
	if others == nil || others.Count == 0 {
		return
	}
	if n.Count == 0 {
		n.Min, n.Max = others.Min, others.Max
	}
	n.Count += others.Count
	n.Sum = finite(n.Sum + others.Sum)
	n.Min, n.Max = min(n.Min, others.Min), max(n.Max, others.Max)
	n.zeros += others.zeros
	n.below.merge(&others.below)
	n.above.merge(&others.above)
}

// Quantile estimates the number that a share of them does not exceed:
// 0.5 for the median. There is at least one number.
func (n *Numbers) Quantile(share float64) float64 {
	rank := int64(share * float64(n.Count-1))
	within := func(estimate float64) float64 { return min(max(estimate, n.Min), n.Max) }
	for i := len(n.below.counts) - 1; i >= 0; i-- {
		if rank -= n.below.counts[i]; rank < 0 {
			return within(-middle(n.below.first + i))
		}
	}
	if rank -= n.zeros; rank < 0 {
		return 0
	}
	for i, count := range n.above.counts {
		if rank -= count; rank < 0 {
			return within(middle(n.above.first + i))
		}
	}
	return n.Max
}

// bins count sizes by their logarithm, in consecutive bins.
type bins struct {
	first  int
	counts []int64 // at most maxBins: the smallest sizes count as the smallest that there is room for
}

func binOf(size float64) int { return int(math.Ceil(math.Log(size) / math.Log(gamma))) }

// middle is the size of which all of a bin are within 2 %.
func middle(bin int) float64 { return 2 * math.Pow(gamma, float64(bin)) / (gamma + 1) }

func (b *bins) add(bin int, count int64) {
	if len(b.counts) == 0 {
		b.first = bin
	}
	last := max(bin, b.first+len(b.counts)-1)
	b.reach(max(min(bin, b.first), last-maxBins+1), last)
	b.counts[max(0, bin-b.first)] += count
}

// reach has the bins begin and end there.
func (b *bins) reach(first, last int) {
	if first == b.first && last < first+len(b.counts) {
		return
	}
	counts := make([]int64, last-first+1)
	for i, count := range b.counts {
		counts[max(0, b.first+i-first)] += count
	}
	b.first, b.counts = first, counts
}

func (b *bins) merge(others *bins) {
	for i, count := range others.counts {
		if count > 0 {
			b.add(others.first+i, count)
		}
	}
}

// finite is a sum, or the largest that can be written.
func finite(sum float64) float64 { return max(-math.MaxFloat64, min(math.MaxFloat64, sum)) }

// numberOf is the number that a JSON value is, infinite where it is too
// large; a string is none.
func numberOf(value []byte) (number float64, ok bool) {
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	number, _ = strconv.ParseFloat(string(value), 64)
	return number, true
}
