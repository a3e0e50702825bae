package main

import "github.com/weirlog/weir/grouping"

// rule is one way to group, with its verdict on each report.
type rule struct {
	name     string
	verdicts []verdict
}

// bench holds the reports and what each rule makes of them.
type bench struct {
	reports []report
	levels  []rule // Weir's, the strictest first
	peers   []rule
	plain   []rule // the plain rule, with ever more frames
	choices []rule
	places  map[int]ranked // see rank
}

func newBench(reports []report) *bench {
	learn(reports)
	b := &bench{reports: reports, choices: choices(reports), places: rank(reports)}
	var names []string
	for _, level := range grouping.Levels {
		names = append(names, levelName(level))
	}
	b.levels = levelRules(reports, names, grouping.Levels[:])
	for _, p := range peers {
		b.peers = append(b.peers, peerRule(reports, p))
	}
	for frames := 1; frames <= mostFrames; frames++ {
		b.plain = append(b.plain, peerRule(reports, peer{key: plain(outermostType, plainWords, frames)}))
	}
	return b
}

func levelName(level grouping.Level) string {
	if level.Decides {
		return "Weir " + string(level.Scope) + " (default)"
	}
	return "Weir " + string(level.Scope)
}

// deciding is the level by which Weir groups.
func deciding() grouping.Level {
	for _, level := range grouping.Levels {
		if level.Decides {
			return level
		}
	}
	panic("no level decides")
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

func peerRule(reports []report, p peer) rule { return keyRule(reports, p.name, p.keyOf) }

func keyRule(reports []report, name string, key keyOf) rule {
	var g grouping.Grouper
	keys := make([]string, len(reports))
	for i := range reports {
		keys[i] = key(&g, reports[i].sent())
	}
	return rule{name, judge(reports, keys)}
}

// learner is what the reports so far show of a project.
type learner struct {
	grouping.Packages
	learned  grouping.Learned
	kinds    map[grouping.Hash]bool       // bounded by the reports
	messages map[grouping.Hash][][][]byte // by the loosest hash; bounded by the reports
}

// learn gives each report what its project's
// earlier errors have shown, as the service does.
func learn(reports []report) {
	var g grouping.Grouper
	projects := map[string]*learner{}
	for i := range reports {
		r := &reports[i]
		if projects[r.Project] == nil {
			projects[r.Project] = &learner{learned: grouping.Learned{Values: grouping.Values{}},
				kinds: map[grouping.Hash]bool{}, messages: map[grouping.Hash][][][]byte{}}
		}
		p := projects[r.Project]
		r.learned = p.learned
		r.learned.Before = len(p.learned.Values) + 1
		p.add(g.Fingerprint(r.sent()))
	}
}

// add learns from an error of a new kind.
func (l *learner) add(f grouping.Fingerprint) {
	kind := f.Deciding().Hash
	if l.kinds[kind] {
		return
	}
	l.kinds[kind] = true
	since, about := l.Kinds, f.Describe()
	l.Add(grouping.PackagesOf(about.Language, about.Exceptions))
	if l.Due(since) {
		l.learned.Libraries = l.Libraries()
	}
	family := f.Similar()
	l.messages[family] = append(l.messages[family], new(grouping.Grouper).Message(about.Language, about.Exceptions))
	if grouping.Varied(len(l.messages[family]), 1) {
		l.learned.Values.Learn(family, l.messages[family])
	}
}
