package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/weirlog/weir/grouping"
)

// printRanking ranks, for each duplicate, the groups so far that share a
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
	byFrame := map[uint64][]int{}
	seen := map[string]bool{}
	for i := range reports {
		if seen[reports[i].Group] {
			places = append(places, placeOf(reports, outlines, i, sharing(outlines[i], byFrame)))
		}
		seen[reports[i].Group] = true
		for _, name := range outlines[i].Names() {
			byFrame[name] = append(byFrame[name], i)
		}
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

func sharing(o grouping.Outline, byFrame map[uint64][]int) map[int]bool {
	candidates := map[int]bool{}
	for _, name := range o.Names() {
		for _, i := range byFrame[name] {
			candidates[i] = true
		}
	}
	return candidates
}

func placeOf(reports []report, outlines []grouping.Outline, query int, candidates map[int]bool) int {
	best := map[string]float64{} // of each group, that of its member which is most alike
	for i := range candidates {
		group := reports[i].Group
		apart := reports[query].Created.Sub(reports[i].Created.Time)
		if likeness := outlines[query].Likeness(outlines[i], apart); likeness > best[group] {
			best[group] = likeness
		}
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
