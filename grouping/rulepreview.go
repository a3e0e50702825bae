package grouping

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of a preview.
const (
	MaxPreviewed      = 2000 // groups, those last seen
	PreviewSamples    = 10   // of each, the newest
	MaxPreviewShown   = 50   // joins, splits and moves, each
	maxPreviewGroups  = 20   // of a join, or of a split
	maxPreviewEntries = 3    // examples
)

// A PreviewGroup is a group that rules are tried on.
type PreviewGroup struct {
	ID       string // in which its errors are counted
	Head     string // as which people see it
	Title    string
	Count    int64
	Language trace.Language
	Samples  []PreviewSample
}

// A PreviewSample is one of its errors.
type PreviewSample struct {
	Entry      string
	Exceptions []trace.Exception
	Context    *EntryContext
}

// A Preview says what rules would do to errors like those of the last days.
type Preview struct {
	Joins, Splits, Moves             []PreviewChange // the most frequent first; Moves are of one group that leave it
	MoreJoins, MoreSplits, MoreMoves int             // that are not shown
	Groups, Samples                  int64           // looked at
	Unknown                          int64           // samples that lack metadata which the rules ask for
}

// A PreviewChange is one that rules would make.
type PreviewChange struct {
	From, Into []PreviewSide
	Count      int64 // errors of the groups that it is from
}

// A PreviewSide is a group of now, or one that there would be.
type PreviewSide struct {
	ID      string // empty: it would be a new group
	Title   string
	Values  []string // that tell a new group from others
	Rule    string   // that makes it; empty: none does
	Count   int64    // errors so far
	Samples int64    // that are in it
	Entries []string // of some of these
}

// A Previewer tries rules on groups.
type Previewer struct {
	Before, After Learned

	grouper Grouper
	groups  []PreviewGroup
	tried   []tried
	unknown int64
}

// tried is a sample by both rules.
type tried struct {
	group         int // its index
	entry         string
	before, after ScopedHash
	to            PreviewSide // as which it would be shown in a new group
}

// Add tries the rules on a group.
func (p *Previewer) Add(g PreviewGroup) {
	for _, s := range g.Samples {
		before := p.grouper.Rewrite(g.Language, s.Exceptions, nil, p.Before, s.Context).Deciding()
		f := p.grouper.Rewrite(g.Language, s.Exceptions, nil, p.After, s.Context)
		after := f.Deciding()
		if p.grouper.ruling.set != nil && p.grouper.ruling.missed {
			p.unknown++
			continue
		}
		t := tried{group: len(p.groups), entry: s.Entry, before: before, after: after}
		if before != after {
			t.to = p.side(f)
		}
		p.tried = append(p.tried, t)
	}
	g.Samples = nil
	p.groups = append(p.groups, g)
}

// side describes the group that an error would be in.
func (p *Previewer) side(f Fingerprint) (s PreviewSide) {
	s.Title = f.Describe().Title
	if culprit := f.culprit(); culprit != "" && !f.ruled() {
		s.Values = append(s.Values, strings.Clone(culprit))
	}
	if f.ruled() {
		s.Rule = trace.Cut(p.grouper.ruling.decides.text, maxShownRule)
		for i, value := range p.grouper.ruling.values {
			if of := p.grouper.ruling.decides.by[i].field; of != fieldText && of != fieldDefault {
				s.Values = append(s.Values, string(of)+": "+strings.Clone(trace.Cut(strings.TrimSpace(value), maxShownRule)))
			}
		}
	}
	return s
}

// Hashes are those that may be known already, of which groups the result asks.
func (p *Previewer) Hashes() (hashes []ScopedHash) {
	seen := map[ScopedHash]bool{} // bounded by the samples
	for _, t := range p.tried {
		if t.before != t.after && !seen[t.after] {
			hashes, seen[t.after] = append(hashes, t.after), true
		}
	}
	return hashes
}

// A Known is a group that has a hash.
type Known struct{ ID, Head, Title string }

// outcome is a group that there would be, with what it is made of.
type outcome struct {
	side  PreviewSide
	from  map[string]*PreviewSide // by head; bounded by the groups
	heads []string                // of these, in the order in which they came
}

// Result says what would become of errors like the samples, if some of
// Hashes are known. New hashes go to the groups that inherit them.
func (p *Previewer) Result(known map[ScopedHash]Known) Preview {
	preview := Preview{Groups: int64(len(p.groups)), Samples: int64(len(p.tried)), Unknown: p.unknown}
	heirs := p.heirs(known)
	outcomes, order := map[string]*outcome{}, []string(nil)
	for _, t := range p.tried {
		of, side := p.groups[t.group], t.to
		var key string
		switch heir, inherits := heirs[t.after]; {
		case t.before == t.after:
			key, side = of.Head, PreviewSide{ID: of.Head, Title: of.Title}
		case known[t.after].ID != "":
			key, side = known[t.after].Head, PreviewSide{ID: known[t.after].Head, Title: known[t.after].Title}
		case inherits:
			key, side = p.groups[heir].Head, PreviewSide{ID: p.groups[heir].Head, Title: p.groups[heir].Title, Values: t.to.Values}
		default:
			key = string(t.after.Scope) + t.after.Hash.String()
		}
		o := outcomes[key]
		if o == nil {
			o = &outcome{side: side, from: map[string]*PreviewSide{}}
			outcomes[key], order = o, append(order, key)
		}
		o.add(of, t.entry)
	}
	preview.fill(p.groups, outcomes, order)
	return preview
}

func (o *outcome) add(of PreviewGroup, entry string) {
	s := o.from[of.Head]
	if s == nil {
		s = &PreviewSide{ID: of.Head, Title: of.Title, Count: of.Count}
		o.from[of.Head], o.heads = s, append(o.heads, of.Head)
	}
	for _, side := range []*PreviewSide{s, &o.side} {
		if side.Samples++; len(side.Entries) < maxPreviewEntries {
			side.Entries = append(side.Entries, entry)
		}
	}
}

// heirs are the groups that inherit new hashes: each one hash, and each hash by
// one group, as far as neither rules before nor those after say what is one.
func (p *Previewer) heirs(known map[ScopedHash]Known) map[ScopedHash]int {
	heirs, has := map[ScopedHash]int{}, map[int]bool{}
	for _, t := range p.tried {
		_, inherited := heirs[t.after]
		natural := t.before.Scope != ScopeRule && t.after.Scope != ScopeRule
		if t.before != t.after && natural && !inherited && !has[t.group] && known[t.after].ID == "" {
			heirs[t.after], has[t.group] = t.group, true
		}
	}
	return heirs
}

// fill lists what changes.
func (v *Preview) fill(groups []PreviewGroup, outcomes map[string]*outcome, order []string) {
	into := map[string][]*outcome{} // by head; bounded by the groups
	for _, key := range order {
		o := outcomes[key]
		for _, head := range o.heads {
			into[head] = append(into[head], o)
		}
		if _, stays := o.from[o.side.ID]; len(o.heads) > 1 || o.side.ID != "" && !stays {
			v.Joins = append(v.Joins, o.join())
		}
	}
	seen := map[string]bool{}
	for _, g := range groups {
		became := into[g.Head]
		if seen[g.Head] || len(became) == 0 {
			continue
		}
		seen[g.Head] = true
		change := PreviewChange{From: []PreviewSide{{ID: g.Head, Title: g.Title, Count: g.Count}}, Count: g.Count}
		for _, o := range became[:min(len(became), maxPreviewGroups)] {
			side, part := o.side, o.from[g.Head]
			side.Samples, side.Entries = part.Samples, part.Entries
			change.Into = append(change.Into, side)
		}
		switch {
		case len(became) > 1:
			v.Splits = append(v.Splits, change)
		case became[0].side.ID == "" && len(became[0].heads) == 1:
			v.Moves = append(v.Moves, change)
		}
	}
	v.Joins, v.MoreJoins = shownChanges(v.Joins)
	v.Splits, v.MoreSplits = shownChanges(v.Splits)
	v.Moves, v.MoreMoves = shownChanges(v.Moves)
}

func (o *outcome) join() (c PreviewChange) {
	for _, head := range o.heads {
		c.Count += o.from[head].Count
		if len(c.From) < maxPreviewGroups {
			c.From = append(c.From, *o.from[head])
		}
	}
	c.Into = []PreviewSide{o.side}
	return c
}

// shownChanges are the most frequent ones, and how many others there are.
func shownChanges(all []PreviewChange) (shown []PreviewChange, more int) {
	slices.SortStableFunc(all, func(a, b PreviewChange) int { return cmp.Compare(b.Count, a.Count) })
	shown = all[:min(len(all), MaxPreviewShown)]
	return shown, len(all) - len(shown)
}
