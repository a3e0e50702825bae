package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// rounds is how often the reports are resampled, to show how
// much of a figure is chance; now is the figure as it is.
const (
	rounds = 1000
	now    = rounds
)

// sampler resamples the reports of a half. It draws all reports of
// one true group together, as they depend on each other.
type sampler struct {
	half
	unit  []int   // of each report, the number of its group
	draws [][]int // how often each round draws each unit, and now, once
}

// newSampler draws as many units as there are,
// repeatedly. Every run draws the same.
func newSampler(reports []report, h half) *sampler {
	s := &sampler{half: h, unit: make([]int, len(reports))}
	numbers := map[string]int{}
	for i := range reports {
		if group := reports[i].Group; h.holds[i] {
			if _, known := numbers[group]; !known {
				numbers[group] = len(numbers)
			}
			s.unit[i] = numbers[group]
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		draw := make([]int, len(numbers))
		for range draw {
			draw[random.IntN(len(draw))]++
		}
		s.draws = append(s.draws, draw)
	}
	s.draws = append(s.draws, slices.Repeat([]int{1}, len(numbers)))
	return s
}

// measured is a rule's result in a half.
type measured struct {
	name string
	tally
	points []point // of each round, and now
}

func (s *sampler) measure(rules ...rule) (all []measured) {
	for _, r := range rules {
		m := measured{name: r.name, tally: count(r.verdicts, s.half)}
		units := make([]tally, len(s.draws[now]))
		for i, v := range r.verdicts {
			if s.holds[i] {
				units[s.unit[i]][v]++
			}
		}
		for _, draw := range s.draws {
			var t tally
			for unit, times := range draw {
				for v, n := range units[unit] {
					t[v] += n * times
				}
			}
			m.points = append(m.points, t.point())
		}
		all = append(all, m)
	}
	return all
}

// capture is what a curve of rules captures in
// a round at a share of false joins.
func capture(rules []measured, round int, mistakes float64) float64 {
	var curve []point
	for _, m := range rules {
		curve = append(curve, m.points[round])
	}
	return captureAt(curve, mistakes)
}

// figure is a result in each round.
type figure func(round int) float64

// interval holds the middle 95 % of a figure in all rounds.
func (f figure) interval() (low, high float64) {
	figures := make([]float64, rounds)
	for round := range figures {
		figures[round] = f(round)
	}
	slices.Sort(figures)
	return figures[rounds*25/1000], figures[rounds*975/1000]
}

// columns are a figure and its interval.
func (f figure) columns(format string) string {
	low, high := f.interval()
	return fmt.Sprintf(format+"\t"+format+"–"+format, f(now), low, high)
}

// String is capture and false joins, each with its interval, as four columns.
func (m measured) String() string {
	capture, mistakes := figure(func(round int) float64 { return m.points[round].capture }), figure(func(round int) float64 { return m.points[round].mistakes })
	return capture.columns("%.3f") + "\t" + mistakes.columns("%.3f")
}
