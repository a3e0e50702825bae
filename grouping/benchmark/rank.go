package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/weirlog/weir/grouping"
)

// history is how many of the errors before one are looked at, as
// many as of a project's groups.
const history = 2000

// printRanking ranks, for each duplicate, the groups of the history that share a
// frame with it, and prints the place of the right one. Groups are the true
// ones, so that false joins do not count twice.
func printRanking(out io.Writer, b *bench) {
	places := rank(b.reports)
	var first, ten int
	var reciprocal float64
	for _, place := range places {
		if place == 0 {
			continue
		}
		reciprocal += 1 / float64(place)
		if place <= 10 {
			ten++
		}
		if place == 1 {
			first++
		}
	}
	n := max(len(places), 1)
	fmt.Fprintf(out, "\nranking of similar groups\t%d duplicates\tRR@1 %.3f\tMRR %.3f\tRR@10 %.3f\n",
		len(places), ratio(first, n), reciprocal/float64(n), ratio(ten, n))
}

// rank returns the place of the right group for each duplicate;
// 0: it shares no frame with it.
func rank(reports []report) (places []int) {
	outlines := outlinesOf(reports)
	calls := make([][]int32, len(reports))
	seen := map[string]bool{}
	for i := range reports {
		calls[i] = outlines[i].Calls()
		if from := max(0, i-history); seen[reports[i].Group] {
			places = append(places, placeOf(reports[from:i+1], outlines[from:i+1], grouping.RarityAmong(calls[from:i])))
		}
		seen[reports[i].Group] = true
	}
	return places
}

func outlinesOf(reports []report) []grouping.Outline {
	var g grouping.Grouper
	outlines := make([]grouping.Outline, len(reports))
	for i := range reports {
		about := g.Fingerprint(reports[i].sent()).Describe()
		outlines[i] = grouping.OutlineOf(about.Language, about.Exceptions)
	}
	return outlines
}

// placeOf is the place of the last report's group.
func placeOf(reports []report, outlines []grouping.Outline, rarity *grouping.Rarity) int {
	query := len(reports) - 1
	best := map[string]float64{} // of each group, that of its member which is most alike
	for i := range query {
		if rarity.Alignment(outlines[query].Calls(), outlines[i].Calls()) == 0 {
			continue
		}
		group := reports[i].Group
		apart := reports[query].Created.Sub(reports[i].Created.Time)
		best[group] = max(best[group], outlines[query].Likeness(outlines[i], apart, rarity))
	}
	own, found := best[reports[query].Group]
	if !found {
		return 0
	}
	var all []float64
	for _, likeness := range best {
		all = append(all, likeness)
	}
	slices.Sort(all)
	at, _ := slices.BinarySearch(all, own)
	return len(all) - at // ties count against it
}
