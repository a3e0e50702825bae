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
func printRanking(out io.Writer, all map[int]ranked, h half) {
	var places []int
	found, shown := 0, 0
	for _, i := range slices.Sorted(maps.Keys(all)) {
		if r := all[i]; h.holds[i] {
			places = append(places, r.place)
			if shown += r.shown; 0 < r.place && r.place <= r.shown {
				found++
			}
		}
	}
	mean := meanReciprocal(places)
	fmt.Fprintf(out, "\nranking of similar groups\t%d duplicates\tRR@1 %.3f\tMRR %s\tRR@10 %.3f\n",
		len(places), within(places, 1), mean.columns("%.3f"), within(places, 10))
	fmt.Fprintf(out, "shown, as worth a look\tat most %d, of %.1f or more\tright among them %.3f\tof those shown right %.3f\n",
		grouping.MaxSimilar, grouping.MinSimilarity, ratio(found, len(places)), ratio(found, shown))
}

// ranked is the place of the right group, 0 if it shares
// no frame, and how many groups are worth a look.
type ranked struct{ place, shown int }

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

// meanReciprocal is the mean reciprocal rank, as rounds resample it.
func meanReciprocal(places []int) figure {
	random := rand.New(rand.NewPCG(1, 2))
	return func(round int) (mean float64) {
		for _, place := range places {
			if round != now {
				place = places[random.IntN(len(places))]
			}
			if place > 0 {
				mean += 1 / float64(place) / float64(len(places))
			}
		}
		return mean
	}
}

// rank ranks, for each duplicate, by its index,
// the groups that share a frame with it.
func rank(reports []report) map[int]ranked {
	outlines, places := outlinesOf(reports), map[int]ranked{}
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

// placeOf ranks the last report's group.
func placeOf(reports []report, outlines []grouping.Outline, rarity *grouping.Rarity) (r ranked) {
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
	all := slices.Sorted(maps.Values(best))
	notable, _ := slices.BinarySearch(all, grouping.MinSimilarity)
	r.shown = min(len(all)-notable, grouping.MaxSimilar)
	if own, found := best[reports[query].Group]; found {
		at, _ := slices.BinarySearch(all, own)
		r.place = len(all) - at // ties count against it
	}
	return r
}
