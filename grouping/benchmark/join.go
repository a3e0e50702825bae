package main

import (
	"fmt"
	"io"

	"github.com/weirlog/weir/grouping"
)

func printJoins(out io.Writer, b *bench) {
	t := count(b.verdicts[0])
	fmt.Fprintf(out, "%d errors in the order in which they came: %d duplicates, %d new. Intervals of 95 %%, drawn %d times.\n\n",
		len(b.reports), t.duplicates(), t.uniques(), rounds)
	fmt.Fprintln(out, "rule\tcapture\t\tfalse joins\t\tmisled\tgroups")
	for rule, name := range b.rules {
		t := count(b.verdicts[rule])
		capture, mistakes := b.intervals(rule)
		if grouping.Levels[min(rule, b.levels-1)].Decides && rule < b.levels {
			name += " (default)"
		}
		fmt.Fprintf(out, "%s\t%.3f\t%.3f–%.3f\t%.3f\t%.3f–%.3f\t%.3f\t%d\n", name, t.point().capture, capture.low, capture.high,
			t.point().mistakes, mistakes.low, mistakes.high, ratio(t[misled], t.duplicates()), t[apart]+t[missed])
	}
}

func (b *bench) intervals(rule int) (capture, mistakes interval) {
	var captures, falses []float64
	for _, sample := range b.samples {
		p := sample[rule].point()
		captures, falses = append(captures, p.capture), append(falses, p.mistakes)
	}
	return intervalOf(captures), intervalOf(falses)
}

// printMargins compares each product with Weir's
// curve at the product's share of false joins.
func printMargins(out io.Writer, b *bench) {
	fmt.Fprintln(out, "\nat its false joins\tcapture\tWeir's curve\tmargin\t")
	for rule := b.levels; rule < len(b.rules); rule++ {
		p, ours := b.points[rule], captureAt(b.points[:b.levels], b.points[rule].mistakes)
		var margins []float64
		for _, sample := range b.samples {
			margins = append(margins, margin(sample, rule, b.levels))
		}
		i := intervalOf(margins)
		fmt.Fprintf(out, "%s\t%.3f\t%.3f\t%+.3f\t%+.3f–%+.3f\n", b.rules[rule], p.capture, ours, ours-p.capture, i.low, i.high)
	}
}

func margin(sample []tally, rule, levels int) float64 {
	curve := make([]point, levels)
	for i := range curve {
		curve[i] = sample[i].point()
	}
	p := sample[rule].point()
	return captureAt(curve, p.mistakes) - p.capture
}
