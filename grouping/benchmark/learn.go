package main

import "github.com/weirlog/weir/grouping"

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
