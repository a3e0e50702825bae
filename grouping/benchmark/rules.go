package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weirlog/weir/grouping"
)

// keyOf is the key by which a rule groups an error.
type keyOf func(g *grouping.Grouper, sent grouping.Error) string

// variant is the deciding level, changed, or without a rule.
type variant struct {
	name    string
	level   grouping.Level
	without grouping.Rules
	change  func(e *grouping.Error) // nil: as it was sent
}

func (v variant) keyOf(g *grouping.Grouper, sent grouping.Error) string {
	if v.change != nil {
		v.change(&sent)
	}
	g.Without = v.without
	return g.Fingerprint(sent).At(v.level).Hash.String()
}

// deciding is how Weir groups.
func deciding() variant {
	for _, level := range grouping.Levels {
		if level.Decides {
			return variant{name: "as it is", level: level}
		}
	}
	panic("no level decides")
}

// variants show what each rule, frame and word is worth.
func variants() []variant {
	all := []variant{deciding()}
	add := func(name string, change func(v *variant)) {
		v := deciding()
		v.name = name
		change(&v)
		all = append(all, v)
	}
	add("without: one frame of a fault", func(v *variant) { v.without = grouping.FaultRule })
	add("without: cycle of endless recursion", func(v *variant) { v.without = grouping.RecursionRule })
	add("without: JavaScript engines' words alike", func(v *variant) { v.without = grouping.WordingRule })
	add("without: errors named in messages", func(v *variant) { v.without = grouping.UnwrapRule })
	add("without: learned libraries", func(v *variant) { v.change = func(e *grouping.Error) { e.Learned.Libraries = nil } })
	add("without: learned values", func(v *variant) { v.change = func(e *grouping.Error) { e.Learned.Values = nil } })
	for _, n := range []int{1, 2, 3, 5, 6, 8} {
		add(counted(n, "frame"), func(v *variant) { v.level.Frames = n })
	}
	for _, n := range []int{0, 1, 3, 8, 16} {
		add(counted(n, "word"), func(v *variant) { v.level.Words = n })
	}
	add("the whole message", func(v *variant) { v.level.Whole = true })
	return all
}

func counted(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// rule is one way to group, with its verdict on each report.
type rule struct {
	name     string
	verdicts []verdict
}

func ruleOf(reports []report, name string, key keyOf) rule {
	var g grouping.Grouper
	keys := make([]string, len(reports))
	for i := range reports {
		keys[i] = key(&g, reports[i].sent())
	}
	return rule{name, judge(reports, keys)}
}

// levelRules groups the reports at levels, each parsed once.
func levelRules(reports []report, names []string, levels []grouping.Level) (rules []rule) {
	var g grouping.Grouper
	keys := make([][]string, len(levels))
	for i := range reports {
		f := g.Fingerprint(reports[i].sent())
		for n, level := range levels {
			h := f.At(level)
			keys[n] = append(keys[n], string(h.Hash[:]))
		}
	}
	for n, name := range names {
		rules = append(rules, rule{name, judge(reports, keys[n])})
	}
	return rules
}

// mostFrames is up to how many frames choices and the plain rule go.
const mostFrames = 8

// bench holds the reports and what each rule makes of them.
type bench struct {
	reports []report
	levels  []rule // Weir's, the strictest first
	peers   []rule
	plain   []rule // the plain rule, with ever more frames
	choices []rule // each level that counts frames, with other frames and words
	places  map[int]ranked
}

func newBench(reports []report) *bench {
	learn(reports)
	b := &bench{reports: reports, places: rank(reports)}
	var names, chosen []string
	var choices []grouping.Level
	for _, level := range grouping.Levels {
		name := "Weir " + string(level.Scope)
		if level.Decides {
			name += " (default)"
		}
		if names = append(names, name); level.Scope == grouping.ScopeTrace {
			continue
		}
		for level.Frames = 1; level.Frames <= mostFrames; level.Frames++ {
			for _, level.Words = range []int{0, 1, 3, 5, 8, 16} {
				chosen = append(chosen, fmt.Sprintf("%s of %d frames, %d words", level.Scope, level.Frames, level.Words))
				choices = append(choices, level)
			}
		}
	}
	b.levels, b.choices = levelRules(reports, names, grouping.Levels[:]), levelRules(reports, chosen, choices)
	for _, p := range peers {
		b.peers = append(b.peers, ruleOf(reports, p.name, p.keyOf))
	}
	for frames := 1; frames <= mostFrames; frames++ {
		b.plain = append(b.plain, ruleOf(reports, "", plain(frames).keyOf))
	}
	return b
}

// choose is the rule that captures most in the half
// at no more than this share of false joins.
func choose(rules []rule, h half, mistakes float64) rule {
	return slices.MaxFunc(rules, func(a, b rule) int {
		p, q := count(a.verdicts, h).point(), count(b.verdicts, h).point()
		pOver, qOver := max(0, p.mistakes-mistakes), max(0, q.mistakes-mistakes)
		return cmp.Or(cmp.Compare(qOver, pOver), cmp.Compare(p.capture, q.capture), cmp.Compare(q.mistakes, p.mistakes))
	})
}

// learner is what the reports so far show of a project.
type learner struct {
	grouping.Packages
	learned  grouping.Learned
	messages map[grouping.Hash][][][]byte // by the loosest hash; bounded by the reports
}

// learn gives each report what its project's
// earlier errors have shown, as the service does.
func learn(reports []report) {
	var g, about grouping.Grouper
	projects, known := map[string]*learner{}, map[string]bool{}
	for i := range reports {
		r := &reports[i]
		p := projects[r.Project]
		if p == nil {
			p = &learner{learned: grouping.Learned{Values: grouping.Values{}}, messages: map[grouping.Hash][][][]byte{}}
			projects[r.Project] = p
		}
		r.learned = p.learned
		r.learned.Before = len(p.learned.Values) + 1
		f := g.Fingerprint(r.sent())
		if kind := r.Project + f.Deciding().Hash.String(); !known[kind] {
			known[kind] = true
			p.add(&about, f)
		}
	}
}

// add learns from an error of a new kind.
func (l *learner) add(g *grouping.Grouper, f grouping.Fingerprint) {
	since, about, family := l.Kinds, f.Describe(), f.Similar()
	l.Add(grouping.PackagesOf(about.Language, about.Exceptions))
	if l.Due(since) {
		l.learned.Libraries = l.Libraries()
	}
	l.messages[family] = append(l.messages[family], g.Message(about.Language, about.Exceptions))
	if grouping.Varied(len(l.messages[family]), 1) {
		l.learned.Values.Learn(family, l.messages[family])
	}
}
