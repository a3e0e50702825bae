package main

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/weirlog/weir/grouping"
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

func count(verdicts []verdict) (t tally) {
	for _, v := range verdicts {
		t[v]++
	}
	return t
}

func (t *tally) add(other tally) {
	for v := range t {
		t[v] += other[v]
	}
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

// resample draws as many units as there are, repeatedly. Every run draws
// the same.
func resample(all []unit, rules int) (samples [][]tally) {
	random := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		sample := make([]tally, rules)
		for range all {
			drawn := all[random.IntN(len(all))]
			for rule := range sample {
				sample[rule].add(drawn[rule])
			}
		}
		samples = append(samples, sample)
	}
	return samples
}

// interval is that of a figure in all samples.
func (b *bench) interval(figure func(sample []tally) float64) interval {
	var figures []float64
	for _, sample := range b.samples {
		figures = append(figures, figure(sample))
	}
	return intervalOf(figures)
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

func printJoins(out io.Writer, b *bench) {
	t := count(b.verdicts[0])
	fmt.Fprintf(out, "%d errors in the order in which they came: %d duplicates, %d new. Intervals of 95 %%, drawn %d times.\n\n",
		len(b.reports), t.duplicates(), t.uniques(), rounds)
	fmt.Fprintln(out, "rule\tcapture\t\tfalse joins\t\tmisled\tgroups")
	for rule, name := range b.rules {
		t := count(b.verdicts[rule])
		capture := b.interval(func(sample []tally) float64 { return sample[rule].point().capture })
		mistakes := b.interval(func(sample []tally) float64 { return sample[rule].point().mistakes })
		if grouping.Levels[min(rule, b.levels-1)].Decides && rule < b.levels {
			name += " (default)"
		}
		fmt.Fprintf(out, "%s\t%.3f\t%.3f–%.3f\t%.3f\t%.3f–%.3f\t%.3f\t%d\n", name, t.point().capture, capture.low, capture.high,
			t.point().mistakes, mistakes.low, mistakes.high, ratio(t[misled], t.duplicates()), t[apart]+t[missed])
	}
}

// printMargins compares each product with Weir's
// curve at the product's share of false joins.
func printMargins(out io.Writer, b *bench) {
	fmt.Fprintln(out, "\nat its false joins\tcapture\tWeir's curve\tmargin\t")
	for rule := b.levels; rule < len(b.rules); rule++ {
		p, ours := b.points[rule], captureAt(b.points[:b.levels], b.points[rule].mistakes)
		i := b.interval(func(sample []tally) float64 { return margin(sample, rule, b.levels) })
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

// fold is a part of the reports unused in tuning.
type fold struct {
	name  string
	holds func(i int) bool
}

// stretches is into how many parts of equal
// length the reports are cut by time.
const stretches = 4

// printFolds prints the default's figures in each part, and those
// of the best choice by all other parts. If the choice is no
// better on unseen parts, the default is not tuned to the data.
func printFolds(out io.Writer, b *bench) {
	variants := variantsOf(b.reports)
	fmt.Fprintln(out, "\ndefault in part\tduplicates\tcapture\tfalse joins\tchosen without the part\tcapture\tfalse joins")
	for _, folds := range [][]fold{byProject(b.reports), byTime(b.reports)} {
		var seen, unseen tally
		for _, f := range folds {
			fixed := countIn(b.verdicts[b.decides()], f.holds)
			chosen := choose(variants, f, countIn(b.verdicts[b.decides()], not(f.holds)).point().mistakes)
			crossed := countIn(chosen.verdicts, f.holds)
			fmt.Fprintf(out, "%s\t%d\t%.3f\t%.3f\t%s\t%.3f\t%.3f\n", f.name, fixed.duplicates(), fixed.point().capture, fixed.point().mistakes,
				chosen.name, crossed.point().capture, crossed.point().mistakes)
			seen.add(fixed)
			unseen.add(crossed)
		}
		fmt.Fprintf(out, "all\t%d\t%.3f\t%.3f\t\t%.3f\t%.3f\n", seen.duplicates(), seen.point().capture, seen.point().mistakes,
			unseen.point().capture, unseen.point().mistakes)
	}
}

func (b *bench) decides() int {
	return slices.IndexFunc(grouping.Levels[:], func(l grouping.Level) bool { return l.Decides })
}

// variant is a level of other depth.
type variant struct {
	name     string
	verdicts []verdict
}

// variantsOf are the levels among which the default is chosen.
func variantsOf(reports []report) (variants []variant) {
	for _, frames := range []int{1, 2, 3, 4, 5, 6, 8, 12} {
		for _, words := range []int{0, 3, 5, 8, 16} {
			level := grouping.Level{Scope: grouping.ScopeSite, Frames: frames, Words: words}
			variants = append(variants, variant{fmt.Sprintf("%d frames, %d words", frames, words), judge(reports, levelKeys(reports, level))})
		}
	}
	return variants
}

// choose is the variant that captures most outside the
// fold, at no more than so many false joins there.
func choose(variants []variant, f fold, mistakes float64) variant {
	const slack = 0.005 // variants are few: none stands exactly where another does
	return slices.MaxFunc(variants, func(a, b variant) int {
		p, q := countIn(a.verdicts, not(f.holds)).point(), countIn(b.verdicts, not(f.holds)).point()
		switch pIn, qIn := p.mistakes <= mistakes+slack, q.mistakes <= mistakes+slack; {
		case pIn != qIn && pIn:
			return 1
		case pIn != qIn:
			return -1
		}
		return cmp.Compare(p.capture, q.capture)
	})
}

func countIn(verdicts []verdict, holds func(i int) bool) (t tally) {
	for i, v := range verdicts {
		if holds(i) {
			t[v]++
		}
	}
	return t
}

func not(holds func(i int) bool) func(i int) bool { return func(i int) bool { return !holds(i) } }

func byProject(reports []report) (folds []fold) {
	seen := map[string]bool{}
	for i := range reports {
		if name := reports[i].Project; !seen[name] {
			seen[name] = true
			folds = append(folds, fold{name, func(i int) bool { return reports[i].Project == name }})
		}
	}
	slices.SortFunc(folds, func(a, b fold) int { return cmp.Compare(a.name, b.name) })
	return folds
}

func byTime(reports []report) (folds []fold) {
	for n := range stretches {
		from, to := len(reports)*n/stretches, len(reports)*(n+1)/stretches
		if from < to {
			folds = append(folds, fold{"from " + reports[from].Created.Format("2006-01"), func(i int) bool { return from <= i && i < to }})
		}
	}
	return folds
}
