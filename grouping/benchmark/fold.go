package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/weirlog/weir/grouping"
)

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
