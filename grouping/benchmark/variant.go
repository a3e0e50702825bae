package main

import (
	"fmt"
	"io"

	"github.com/weirlog/weir/grouping"
)

// variant is the deciding level with one rule changed.
type variant struct {
	name   string
	change func(level *grouping.Level)
}

// variants show what each rule is worth.
var variants = []variant{
	{"as it is", func(*grouping.Level) {}},
	{"1 frame", func(l *grouping.Level) { l.Frames = 1 }},
	{"2 frames", func(l *grouping.Level) { l.Frames = 2 }},
	{"3 frames", func(l *grouping.Level) { l.Frames = 3 }},
	{"4 frames", func(l *grouping.Level) { l.Frames = 4 }},
	{"5 frames", func(l *grouping.Level) { l.Frames = 5 }},
	{"6 frames", func(l *grouping.Level) { l.Frames = 6 }},
	{"7 frames", func(l *grouping.Level) { l.Frames = 7 }},
	{"8 frames", func(l *grouping.Level) { l.Frames = 8 }},
	{"no words", func(l *grouping.Level) { l.Words = 0 }},
	{"1 word", func(l *grouping.Level) { l.Words = 1 }},
	{"3 words", func(l *grouping.Level) { l.Words = 3 }},
	{"5 words", func(l *grouping.Level) { l.Words = 5 }},
	{"8 words", func(l *grouping.Level) { l.Words = 8 }},
	{"16 words", func(l *grouping.Level) { l.Words = 16 }},
	{"the whole message", func(l *grouping.Level) { l.Whole = true }},
}

func (v variant) level() grouping.Level {
	level := deciding()
	v.change(&level)
	return level
}

// printVariants prints each variant on the matrices and
// on halves of the reports, if any, the tuning one first.
func printVariants(out io.Writer, reports []report, halves []half, all []matrix) {
	var names []string
	var levels []grouping.Level
	for _, v := range variants {
		names, levels = append(names, v.name), append(levels, v.level())
	}
	rules := levelRules(reports, names, levels)
	fmt.Fprint(out, "Weir with\tkept\tapart")
	for i := range halves {
		on := [...]string{"tuning", "reporting"}[i]
		fmt.Fprintf(out, "\tcapture, %s\tfalse joins, %s", on, on)
	}
	fmt.Fprintln(out)
	for n, r := range rules {
		printVariant(out, r, halves, total(all, atLevel(levels[n])))
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
