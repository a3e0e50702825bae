package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// rounds is how often the reports are resampled,
// to show how much of a figure is chance.
const rounds = 1000

// sampler resamples the reports of a half. It draws all reports of
// one true group together, as they depend on each other.
type sampler struct {
	half
	unit  []int   // of each report, the number of its group
	draws [][]int // how often each round draws each unit
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
	return s
}

// measured is a rule's result in a half:
// as it is, and once for each round.
type measured struct {
	name string
	tally
	samples []point
}

func (s *sampler) measure(r rule) measured {
	m := measured{name: r.name, tally: count(r.verdicts, s.half)}
	units := make([]tally, len(s.draws[0]))
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
		m.samples = append(m.samples, t.point())
	}
	return m
}

func (s *sampler) measureAll(rules []rule) (all []measured) {
	for _, r := range rules {
		all = append(all, s.measure(r))
	}
	return all
}

// curve is the points of rules in one round; now: as they are.
func curve(rules []measured, round int) (points []point) {
	for _, m := range rules {
		if round == now {
			points = append(points, m.point())
		} else {
			points = append(points, m.samples[round])
		}
	}
	return points
}

const now = -1

// interval holds the middle 95 % of a figure in all rounds.
type interval struct{ low, high float64 }

func intervalOf(figure func(round int) float64) interval {
	figures := make([]float64, rounds)
	for round := range figures {
		figures[round] = figure(round)
	}
	slices.Sort(figures)
	return interval{figures[rounds*25/1000], figures[rounds*975/1000]}
}

func (i interval) String() string { return fmt.Sprintf("%.3f–%.3f", i.low, i.high) }

// String is capture and false joins, each with its interval, as four columns.
func (m measured) String() string {
	capture := intervalOf(func(round int) float64 { return m.samples[round].capture })
	mistakes := intervalOf(func(round int) float64 { return m.samples[round].mistakes })
	return fmt.Sprintf("%.3f\t%v\t%.3f\t%v", m.point().capture, capture, m.point().mistakes, mistakes)
}
