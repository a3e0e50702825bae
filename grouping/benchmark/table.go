package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Levels are compared with the plain rule, and chosen, at these
// shares of false joins.
var shares = [...]float64{0.085, 0.20}

// printHalf prints every result on one half of the reports. What is
// chosen for the reporting one, the tuning one chooses.
func printHalf(out io.Writer, b *bench, s split, tuning bool) {
	h, note := s.reporting, fmt.Sprintf("Tuned on %s.", s.tuning.name)
	if tuning {
		h, note = s.tuning, "For tuning: the other half reports."
	}
	sampler := newSampler(b.reports, h)
	levels, peers, plain := sampler.measure(b.levels...), sampler.measure(b.peers...), sampler.measure(b.plain...)
	fmt.Fprintf(out, "On %s: %d duplicates, %d new. %s Intervals of 95 %%, resampled %d times.\n\n",
		h.name, levels[0].duplicates(), levels[0].uniques(), note, rounds)
	fmt.Fprintln(out, "rule\tcapture\t\tfalse joins\t\tmisled\tgroups")
	for _, m := range slices.Concat(levels, peers) {
		fmt.Fprintf(out, "%s\t%v\t%.3f\t%d\n", m.name, m, ratio(m.tally[misled], m.duplicates()), m.tally[apart]+m.tally[missed])
	}
	printMargins(out, levels, peers)
	printShares(out, levels, plain)
	if !tuning {
		fmt.Fprintln(out, "\nchosen for false joins of\tby the tuning half\tits capture\tits false joins\tcapture\t\tfalse joins\t")
		for _, share := range shares {
			best := choose(b.choices, s.tuning, share)
			there := count(best.verdicts, s.tuning).point()
			fmt.Fprintf(out, "%.3f\t%s\t%.3f\t%.3f\t%v\n", share, best.name, there.capture, there.mistakes, sampler.measure(best)[0])
		}
	}
	printRanking(out, b.places, h)
}

// printMargins compares each peer with Weir's
// curve at the peer's share of false joins.
func printMargins(out io.Writer, levels, peers []measured) {
	fmt.Fprintln(out, "\nat its false joins\tcapture\tWeir's curve\tmargin\t")
	var undecided []string
	for _, p := range peers {
		margin := figure(func(round int) float64 {
			return capture(levels, round, p.points[round].mistakes) - p.points[round].capture
		})
		if low, _ := margin.interval(); low <= 0 {
			undecided = append(undecided, p.name)
		}
		fmt.Fprintf(out, "%s\t%.3f\t%.3f\t%s\n", p.name, p.point().capture, capture(levels, now, p.point().mistakes), margin.columns("%+.3f"))
	}
	fmt.Fprintf(out, "Weir is not better by more than chance than: %s.\n", cmp.Or(strings.Join(undecided, ", "), "none of them"))
}

// printShares compares Weir's curve with that
// of the plain rule at fixed false joins.
func printShares(out io.Writer, levels, plain []measured) {
	fmt.Fprintf(out, "\nat false joins of\tWeir's curve\t\ttype + %d words + top 1 to %d own frames\tmargin\t\n", plainWords, mostFrames)
	for _, share := range shares {
		ours := figure(func(round int) float64 { return capture(levels, round, share) })
		margin := figure(func(round int) float64 { return ours(round) - capture(plain, round, share) })
		fmt.Fprintf(out, "%.3f\t%s\t%.3f\t%s\n", share, ours.columns("%.3f"), capture(plain, now, share), margin.columns("%+.3f"))
	}
}

// printVariants prints each variant on the matrices and
// on halves of the reports, if any, the tuning one first.
func printVariants(out io.Writer, reports []report, halves []half, all []matrix) {
	fmt.Fprint(out, "Weir with\tkept\tapart")
	for i := range halves {
		on := [...]string{"tuning", "reporting"}[i]
		fmt.Fprintf(out, "\tcapture, %s\tfalse joins, %s", on, on)
	}
	fmt.Fprintln(out)
	row := func(name string, key keyOf) {
		s, r := total(all, key), ruleOf(reports, name, key)
		fmt.Fprintf(out, "%s\t%v\t%v", name, s.kept, s.apart)
		for _, h := range halves {
			p := count(r.verdicts, h).point()
			fmt.Fprintf(out, "\t%.3f\t%.3f", p.capture, p.mistakes)
		}
		fmt.Fprintln(out)
	}
	for _, v := range variants() {
		row(v.name, v.keyOf)
	}
	for _, p := range peers {
		row(p.name, p.keyOf)
	}
}
