package ingest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// A tally counts the values of a field. It keeps the frequent ones
// (Misra and Gries, "Finding repeated elements", 1982, with decrements for
// many values at once; Agarwal et al., "Mergeable summaries", 2012).
type tally struct {
	values   map[string]*tracked // bounded by trim: fewer than twice most
	most     int
	buckets  int64
	numbers  bool
	patterns bool // values are masks of them
	without  int64
	lost     int64 // no value that is not in values has more entries
}

// tracked is a value, counted since it was last found to be new.
type tracked struct {
	ValueCount
	weight int64 // entries, less what makes room for others
}

func newTally(c *Count, of Field) tally {
	t := tally{values: map[string]*tracked{}, most: c.tracked(of), numbers: c.Of.name != "", patterns: of.name == FieldPattern}
	if c.Every > 0 {
		t.buckets = c.Buckets()
	}
	return t
}

func (t *tally) add(value []byte, entries, bucket int64, numbers []float64) *tracked {
	v := t.values[string(value)]
	if v == nil {
		v = t.track(bytes.Clone(value))
	}
	v.Entries += entries
	v.weight += entries
	if v.Buckets != nil {
		v.Buckets[bucket] += entries
	}
	for _, number := range numbers {
		v.Numbers.Add(number)
	}
	return v
}

// track begins to count a value, and makes room for it.
func (t *tally) track(value []byte) *tracked {
	t.trim(2*t.most - 1)
	v := &tracked{ValueCount: ValueCount{Value: string(value)}}
	if t.buckets > 0 {
		v.Buckets = make([]int64, t.buckets)
	}
	if t.numbers {
		v.Numbers = new(Numbers)
	}
	if t.patterns {
		v.Pattern = &Pattern{mask: v.Value}
	}
	t.values[v.Value] = v
	return v
}

// trim takes from all weights what leaves at most t.most of the values,
// where there are more than some.
func (t *tally) trim(some int) {
	if len(t.values) <= some {
		return
	}
	if t.patterns {
		if t.join(); len(t.values) <= t.most*3/2 { // else there would soon be too many again
			return
		}
	}
	weights := make([]int64, 0, len(t.values))
	for _, v := range t.values {
		weights = append(weights, v.weight)
	}
	slices.Sort(weights)
	least := weights[len(weights)-t.most-1]
	t.lost += least
	for value, v := range t.values {
		if v.weight -= least; v.weight <= 0 {
			delete(t.values, value)
		}
	}
}

func (t *tally) merge(other *tally) {
	t.without += other.without
	t.lost += other.lost
	for value, theirs := range other.values {
		t.take(value, theirs)
	}
	t.trim(2*t.most - 1)
}

// take adds what was counted of a value elsewhere.
func (t *tally) take(value string, theirs *tracked) {
	ours := t.values[value]
	if ours == nil {
		t.values[value] = theirs
		return
	}
	ours.Entries += theirs.Entries
	ours.weight += theirs.weight
	for i, n := range theirs.Buckets {
		ours.Buckets[i] += n
	}
	ours.Numbers.Merge(theirs.Numbers)
	ours.Pattern.merge(theirs.Pattern)
}

func (t *tally) top(most int) []ValueCount {
	var list []ValueCount
	for _, v := range slices.SortedFunc(maps.Values(t.values), moreFrequent) {
		if len(list) == most {
			break
		}
		value := v.ValueCount
		if t.patterns {
			value.Value = patternText(value.Pattern.mask)
		}
		list = append(list, value)
	}
	return list
}

func moreFrequent(a, b *tracked) int {
	if a.Entries != b.Entries {
		return int(b.Entries - a.Entries)
	}
	return strings.Compare(a.Value, b.Value)
}
