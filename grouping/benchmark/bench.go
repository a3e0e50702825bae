package main

import "github.com/weirlog/weir/grouping"

// bench holds the reports and each rule's verdicts on them.
type bench struct {
	reports  []report
	rules    []string // Weir's levels, the strictest first, then those of other products
	levels   int      // how many of them are Weir's
	verdicts [][]verdict
	points   []point
	samples  [][]tally // of the reports, resampled
}

func newBench(reports []report) *bench {
	learn(reports)
	b := &bench{reports: reports, levels: len(grouping.Levels)}
	rule := func(name string, keys []string) {
		v := judge(reports, keys)
		b.rules, b.verdicts, b.points = append(b.rules, name), append(b.verdicts, v), append(b.points, count(v).point())
	}
	for _, level := range grouping.Levels {
		rule("Weir "+string(level.Scope), levelKeys(reports, level))
	}
	for _, p := range peers {
		rule(p.name, peerKeys(reports, p))
	}
	b.samples = resample(units(reports, b.verdicts), len(b.rules))
	return b
}

func levelKeys(reports []report, level grouping.Level) []string {
	var g grouping.Grouper
	keys := make([]string, len(reports))
	for i := range reports {
		h := g.Fingerprint(reports[i].sent()).At(level)
		keys[i] = string(h.Hash[:])
	}
	return keys
}

func peerKeys(reports []report, p peer) []string {
	var g grouping.Grouper
	keys := make([]string, len(reports))
	for i := range reports {
		sent := reports[i].sent()
		sent.Learned = grouping.Learned{} // they don't learn
		about := g.Fingerprint(sent).Describe()
		keys[i] = p.key(&about, sent)
	}
	return keys
}

// learner is what the reports so far show of a project.
type learner struct {
	grouping.Packages
	libraries grouping.Libraries
	kinds     map[grouping.Hash]bool // bounded by the reports
}

// learn gives each report the libraries found by its
// project's earlier errors, as the service does.
func learn(reports []report) {
	var g grouping.Grouper
	projects := map[string]*learner{}
	for i := range reports {
		r := &reports[i]
		if projects[r.Project] == nil {
			projects[r.Project] = &learner{kinds: map[grouping.Hash]bool{}}
		}
		p := projects[r.Project]
		r.libraries = p.libraries
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
		l.libraries = l.Libraries()
	}
}
