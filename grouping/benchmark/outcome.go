package main

import (
	"cmp"
	"slices"
)

// verdict is the outcome of one report.
type verdict uint8

const (
	unjudged verdict = iota // a duplicate, of an unknown original
	apart                   // something new, and a new group
	joined                  // something new, and in the group of something else: a false join
	captured                // a duplicate, in a group that holds what it duplicates
	misled                  // a duplicate, in a group that does not
	missed                  // a duplicate, and a new group
)

// judge groups the reports in order, by one
// key each, and returns a verdict on each.
func judge(reports []report, keys []string) []verdict {
	groups, seen := map[string]map[string]bool{}, map[string]bool{}
	verdicts := make([]verdict, len(reports))
	for i := range reports {
		gold := reports[i].Group
		group, exists := groups[keys[i]]
		verdicts[i] = verdictOf(seen[gold], reports[i].Unsure, exists, group[gold])
		if !exists {
			group = map[string]bool{}
			groups[keys[i]] = group
		}
		group[gold], seen[gold] = true, true
	}
	return verdicts
}

func verdictOf(duplicate, unsure, exists, holds bool) verdict {
	switch {
	case duplicate && holds:
		return captured
	case duplicate && exists:
		return misled
	case duplicate:
		return missed
	case unsure:
		return unjudged
	case exists:
		return joined
	}
	return apart
}

// tally counts verdicts.
type tally [missed + 1]int

// count counts the verdicts on the reports of a half.
func count(verdicts []verdict, h half) (t tally) {
	for i, v := range verdicts {
		if h.holds[i] {
			t[v]++
		}
	}
	return t
}

func (t tally) duplicates() int { return t[captured] + t[misled] + t[missed] }
func (t tally) uniques() int    { return t[apart] + t[joined] }

// point is the result of a rule: shares
// of captured duplicates and false joins.
type point struct{ capture, mistakes float64 }

func (t tally) point() point {
	return point{ratio(t[captured], t.duplicates()), ratio(t[joined], t.uniques())}
}

func ratio(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// captureAt is what a curve of points captures at a
// share of false joins, interpolated between its points.
func captureAt(curve []point, mistakes float64) float64 {
	below := point{}
	for _, p := range slices.SortedFunc(slices.Values(curve), func(a, b point) int { return cmp.Compare(a.mistakes, b.mistakes) }) {
		if p.mistakes >= mistakes {
			if p.mistakes == below.mistakes {
				return max(p.capture, below.capture)
			}
			return below.capture + (p.capture-below.capture)*(mistakes-below.mistakes)/(p.mistakes-below.mistakes)
		}
		below = p
	}
	return below.capture
}
