package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// printHalf prints every result on one half of the reports. What is
// chosen for the reporting one, the tuning one chooses.
func printHalf(out io.Writer, b *bench, s split, tuning bool) {
	h, note := s.reporting, fmt.Sprintf("Tuned on %s.", s.tuning.name)
	if tuning {
		h, note = s.tuning, "For tuning: the other half reports."
	}
	sampler := newSampler(b.reports, h)
	levels, peers, plain := sampler.measureAll(b.levels), sampler.measureAll(b.peers), sampler.measureAll(b.plain)
	fmt.Fprintf(out, "On %s: %d duplicates, %d new. %s Intervals of 95 %%, resampled %d times.\n\n",
		h.name, levels[0].duplicates(), levels[0].uniques(), note, rounds)
	fmt.Fprintln(out, "rule\tcapture\t\tfalse joins\t\tmisled\tgroups")
	for _, m := range slices.Concat(levels, peers) {
		fmt.Fprintf(out, "%s\t%v\t%.3f\t%d\n", m.name, m, ratio(m.tally[misled], m.duplicates()), m.tally[apart]+m.tally[missed])
	}
	printMargins(out, levels, peers)
	printShares(out, levels, plain)
	if !tuning {
		printChoices(out, sampler, b.choices, s)
	}
	printRanking(out, b.places, h)
}

// printMargins compares each peer with Weir's
// curve at the peer's share of false joins.
func printMargins(out io.Writer, levels, peers []measured) {
	fmt.Fprintln(out, "\nat its false joins\tcapture\tWeir's curve\tmargin\t")
	var undecided []string
	for _, p := range peers {
		theirs, ours := p.point(), captureAt(curve(levels, now), p.point().mistakes)
		i := intervalOf(func(round int) float64 {
			return captureAt(curve(levels, round), p.samples[round].mistakes) - p.samples[round].capture
		})
		if i.low <= 0 {
			undecided = append(undecided, p.name)
		}
		fmt.Fprintf(out, "%s\t%.3f\t%.3f\t%+.3f\t%+.3f–%+.3f\n", p.name, theirs.capture, ours, ours-theirs.capture, i.low, i.high)
	}
	if len(undecided) == 0 {
		undecided = append(undecided, "none of them")
	}
	fmt.Fprintf(out, "Weir is not better by more than chance than: %s.\n", strings.Join(undecided, ", "))
}

// printShares compares Weir's curve with that
// of the plain rule at fixed false joins.
func printShares(out io.Writer, levels, plain []measured) {
	fmt.Fprintf(out, "\nat false joins of\tWeir's curve\t\ttype + %d words + top 1 to %d own frames\tmargin\t\n", plainWords, mostFrames)
	for _, share := range shares {
		ours := func(round int) float64 { return captureAt(curve(levels, round), share) }
		theirs := func(round int) float64 { return captureAt(curve(plain, round), share) }
		margin := func(round int) float64 { return ours(round) - theirs(round) }
		i := intervalOf(margin)
		fmt.Fprintf(out, "%.3f\t%.3f\t%v\t%.3f\t%+.3f\t%+.3f–%+.3f\n", share, ours(now), intervalOf(ours), theirs(now), margin(now), i.low, i.high)
	}
}

// printChoices prints the best levels by the tuning half, and what
// they are worth on the reporting one.
func printChoices(out io.Writer, reporting *sampler, choices []rule, s split) {
	fmt.Fprintln(out, "\nchosen for false joins of\tby the tuning half\tits capture\tits false joins\tcapture\t\tfalse joins\t")
	for _, share := range shares {
		best := choose(choices, s.tuning, share)
		there := count(best.verdicts, s.tuning).point()
		fmt.Fprintf(out, "%.3f\t%s\t%.3f\t%.3f\t%v\n", share, best.name, there.capture, there.mistakes, reporting.measure(best))
	}
}
