package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirlog/weir/grouping"
)

// Levels are compared with the plain rule, and chosen, at these
// shares of false joins.
var shares = [...]float64{0.085, 0.20}

// mostFrames is up to how many frames choices go.
const mostFrames = 8

// choices are levels among which one is chosen: each that
// counts frames, with other frames and words.
func choices(reports []report) []rule {
	var names []string
	var levels []grouping.Level
	for _, level := range grouping.Levels {
		if level.Scope == grouping.ScopeTrace {
			continue
		}
		for level.Frames = 1; level.Frames <= mostFrames; level.Frames++ {
			for _, level.Words = range []int{0, 1, 3, 5, 8, 16} {
				names = append(names, fmt.Sprintf("%s of %d frames, %d words", level.Scope, level.Frames, level.Words))
				levels = append(levels, level)
			}
		}
	}
	return levelRules(reports, names, levels)
}

// choose is the rule that captures most in the half
// at no more than this share of false joins.
func choose(rules []rule, h half, mistakes float64) rule {
	return slices.MaxFunc(rules, func(a, b rule) int {
		p, q := count(a.verdicts, h).point(), count(b.verdicts, h).point()
		pOver, qOver := max(0, p.mistakes-mistakes), max(0, q.mistakes-mistakes)
		return cmp.Or(cmp.Compare(qOver, pOver), cmp.Compare(p.capture, q.capture), cmp.Compare(q.mistakes, p.mistakes))
	})
}
