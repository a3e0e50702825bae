package main

import (
	"fmt"
	"io"

	"github.com/weirlog/weir/grouping"
)

// variant is the deciding level, changed, or without a rule.
type variant struct {
	name    string
	change  func(level *grouping.Level) // nil: nothing
	without grouping.Rules
	sent    func(e *grouping.Error) // nil: as it was
}

// variants show what each rule is worth.
var variants = []variant{
	{name: "as it is"},
	{name: "without: one frame of a fault", without: grouping.FaultRule},
	{name: "without: cycle of endless recursion", without: grouping.RecursionRule},
	{name: "without: JavaScript engines' words alike", without: grouping.WordingRule},
	{name: "without: errors named in messages", without: grouping.UnwrapRule},
	{name: "without: learned libraries", sent: func(e *grouping.Error) { e.Learned.Libraries = nil }},
	{name: "without: learned values", sent: func(e *grouping.Error) { e.Learned.Values = nil }},
	{name: "1 frame", change: func(l *grouping.Level) { l.Frames = 1 }},
	{name: "2 frames", change: func(l *grouping.Level) { l.Frames = 2 }},
	{name: "3 frames", change: func(l *grouping.Level) { l.Frames = 3 }},
	{name: "5 frames", change: func(l *grouping.Level) { l.Frames = 5 }},
	{name: "6 frames", change: func(l *grouping.Level) { l.Frames = 6 }},
	{name: "8 frames", change: func(l *grouping.Level) { l.Frames = 8 }},
	{name: "no words", change: func(l *grouping.Level) { l.Words = 0 }},
	{name: "1 word", change: func(l *grouping.Level) { l.Words = 1 }},
	{name: "3 words", change: func(l *grouping.Level) { l.Words = 3 }},
	{name: "8 words", change: func(l *grouping.Level) { l.Words = 8 }},
	{name: "16 words", change: func(l *grouping.Level) { l.Words = 16 }},
	{name: "the whole message", change: func(l *grouping.Level) { l.Whole = true }},
}

func (v variant) keyOf(g *grouping.Grouper, sent grouping.Error) string {
	level := deciding()
	if v.change != nil {
		v.change(&level)
	}
	if v.sent != nil {
		v.sent(&sent)
	}
	g.Without = v.without
	return g.Fingerprint(sent).At(level).Hash.String()
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
	for _, v := range variants {
		printVariant(out, keyRule(reports, v.name, v.keyOf), halves, total(all, v.keyOf))
	}
	for _, p := range peers {
		printVariant(out, peerRule(reports, p), halves, total(all, p.keyOf))
	}
}

func printVariant(out io.Writer, r rule, halves []half, s score) {
	fmt.Fprintf(out, "%s\t%v\t%v", r.name, s.kept, s.apart)
	for _, h := range halves {
		p := count(r.verdicts, h).point()
		fmt.Fprintf(out, "\t%.3f\t%.3f", p.capture, p.mistakes)
	}
	fmt.Fprintln(out)
}
