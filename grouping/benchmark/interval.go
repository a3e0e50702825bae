package main

import (
	"math/rand/v2"
	"slices"
)

// rounds is how often the reports are resampled,
// to show how much of a figure is chance.
const rounds = 1000

// unit is what is drawn: all reports of one group, as
// they depend on each other, with the tally of each rule.
type unit []tally

// units splits each rule's verdicts by the reports' groups.
func units(reports []report, verdicts [][]verdict) []unit {
	index := map[string]int{}
	var all []unit
	for i := range reports {
		n, ok := index[reports[i].Group]
		if !ok {
			n = len(all)
			index[reports[i].Group] = n
			all = append(all, make(unit, len(verdicts)))
		}
		for rule := range verdicts {
			all[n][rule][verdicts[rule][i]]++
		}
	}
	return all
}

// resample draws as many units as there are, repeatedly,
// and measures each sample. Every run draws the same.
func resample(all []unit, rules int, measure func(sample []tally)) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := make([]tally, rules)
	for range rounds {
		clear(sample)
		for range all {
			drawn := all[random.IntN(len(all))]
			for rule := range sample {
				sample[rule].add(drawn[rule])
			}
		}
		measure(sample)
	}
}

// interval holds the middle 95 % of the figures.
type interval struct{ low, high float64 }

func intervalOf(figures []float64) interval {
	slices.Sort(figures)
	return interval{figures[len(figures)*25/1000], figures[len(figures)*975/1000]}
}

// captureAt is what a curve of points captures at a
// share of false joins, interpolated between its points.
func captureAt(curve []point, mistakes float64) float64 {
	below := point{}
	for _, p := range slices.SortedFunc(slices.Values(curve), func(a, b point) int { return compare(a.mistakes, b.mistakes) }) {
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

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
