package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/weirlog/weir/grouping"
)

// history is how many earlier errors are
// ranked, as many as groups of a project.
const history = 2000

// printRanking prints, for the duplicates of a half, at which place
// the right group is. Groups are the true ones, so false joins do
// not count twice.
func printRanking(out io.Writer, all map[int]int, h half) {
	var places []int
	for _, i := range slices.Sorted(maps.Keys(all)) {
		if h.holds[i] {
			places = append(places, all[i])
		}
	}
	i := mrrInterval(places)
	fmt.Fprintf(out, "\nranking of similar groups\t%d duplicates\tRR@1 %.3f\tMRR %.3f\t%v\tRR@10 %.3f\n",
		len(places), within(places, 1), meanReciprocal(places), i, within(places, 10))
}

// within is the share of places up to last.
func within(places []int, last int) float64 {
	n := 0
	for _, place := range places {
		if 0 < place && place <= last {
			n++
		}
	}
	return ratio(n, len(places))
}

func meanReciprocal(places []int) (mean float64) {
	for _, place := range places {
		if place > 0 {
			mean += 1 / float64(place) / float64(len(places))
		}
	}
	return mean
}

// mrrInterval is that of the mean reciprocal rank.
func mrrInterval(places []int) interval {
	random, sample := rand.New(rand.NewPCG(1, 2)), make([]int, len(places))
	return intervalOf(func(int) float64 {
		for i := range sample {
			sample[i] = places[random.IntN(len(places))]
		}
		return meanReciprocal(sample)
	})
}

// rank returns the place of the right group for each duplicate, by its
// index; 0: it shares no frame with it. Groups are ranked that share a
// frame with it.
func rank(reports []report) map[int]int {
	outlines, places := outlinesOf(reports), map[int]int{}
	var calls [][]int32
	for i := range outlines {
		calls = append(calls, outlines[i].Calls())
	}
	for _, i := range duplicatesOf(reports) {
		from := max(0, i-history)
		places[i] = placeOf(reports[from:i+1], outlines[from:i+1], grouping.RarityAmong(calls[from:i]))
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
	calls := rarity.Query(outlines[query].Calls())
	best := map[string]float64{} // of each group, that of its most similar member
	for i := range query {
		if calls.Alignment(outlines[i].Calls()) == 0 {
			continue
		}
		group := reports[i].Group
		best[group] = max(best[group], outlines[query].Similarity(outlines[i], rarity))
	}
	own, found := best[reports[query].Group]
	if !found {
		return 0
	}
	var all []float64
	for _, similarity := range best {
		all = append(all, similarity)
	}
	slices.Sort(all)
	at, _ := slices.BinarySearch(all, own)
	return len(all) - at // ties count against it
}
