package ingest

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// Numbers sums up numbers, and estimates their quantiles within 1 % of
// the value (Masson, Rim and Lee, "DDSketch", VLDB 2019). A nil *Numbers
// has none.
type Numbers struct {
	Count    int64
	Sum      float64
	Min, Max float64
	bins     map[int]int64 // bounded by the exponents of numbers between smallest and largest, of both signs
}

const (
	gamma    = 1.02 // (1 + 1 %) / (1 - 1 %)
	smallest = 1e-9 // what is closer to 0 counts as 0
	largest  = 1e15 // what is further from 0 counts as this far
	zeroBin  = 0
	binShift = 1 << 12 // more than there are exponents below smallest
)

// Add takes a number.
func (n *Numbers) Add(number float64) {
	if n.bins == nil {
		n.bins, n.Min, n.Max = map[int]int64{}, number, number
	}
	n.Count++
	n.Sum = finite(n.Sum + number)
	n.Min, n.Max = min(n.Min, number), max(n.Max, number)
	n.bins[binOf(number)]++
}

// binOf is the number of the bin, in the order of the numbers: 0 has zeroBin.
func binOf(number float64) int {
	size := min(math.Abs(number), largest)
	if size < smallest {
		return zeroBin
	}
	bin := int(math.Ceil(math.Log(size)/math.Log(gamma))) + binShift
	if number < 0 {
		return -bin
	}
	return bin
}

// middle is the number of which all of a bin are within 1 %.
func middle(bin int) float64 {
	switch {
	case bin == zeroBin:
		return 0
	case bin < 0:
		return -middle(-bin)
	}
	return 2 * math.Pow(gamma, float64(bin-binShift)) / (gamma + 1)
}

// Merge adds the numbers of others.
func (n *Numbers) Merge(others *Numbers) {
	switch {
	case others == nil || others.Count == 0:
		return
	case n.Count == 0:
		*n = Numbers{others.Count, others.Sum, others.Min, others.Max, maps.Clone(others.bins)}
		return
	}
	n.Count += others.Count
	n.Sum = finite(n.Sum + others.Sum)
	n.Min, n.Max = min(n.Min, others.Min), max(n.Max, others.Max)
	for bin, count := range others.bins {
		n.bins[bin] += count
	}
}

// Quantile estimates the number that a share of them does not exceed:
// 0.5 for the median. There is at least one number.
func (n *Numbers) Quantile(share float64) float64 {
	rank := int64(share * float64(n.Count-1))
	for _, bin := range slices.Sorted(maps.Keys(n.bins)) {
		if rank -= n.bins[bin]; rank < 0 {
			return min(max(middle(bin), n.Min), n.Max)
		}
	}
	return n.Max
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
