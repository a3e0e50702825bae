package trace

import (
	"math/bits"
	"strings"
)

// sign tells which lines may be calls of a runtime, so that few runtimes are asked about a line. Any digit stands for
// all, and any capital.
type sign struct {
	needs, lacks string // what all of them hold, and what none does
	first, last  string // one of which begins or ends them, blanks aside; empty: anything
}

// candidate is a form of calls, or what reads others, for lines with a sign.
type candidate struct {
	needs, lacks, last marks
	syntax             int
	isCall             func(l line, f *Frame) bool
}

// endings are how lines end, by what most calls end in.
var endings = [...]marks{kinds['0'], kinds[')'], ^(kinds['0'] | kinds[')'])}

// candidates are by the kind of the byte with which lines begin, and their ending.
var candidates = func() (all [64][len(endings)][]candidate) {
	add := func(c candidate, first marks) {
		if c.last == 0 {
			c.last = ^marks(0)
		}
		for kind := range all {
			for i, ending := range endings {
				if (first == 0 || first>>kind&1 != 0) && c.last&ending != 0 {
					all[kind][i] = append(all[kind][i], c)
				}
			}
		}
	}
	for i := range syntaxes {
		s := &syntaxes[i]
		for k := range s.forms {
			p := &s.forms[k]
			first, last := p.ends()
			isCall := func(l line, f *Frame) bool { return p.frame(l.string, f) }
			if s.bare != nil {
				first, isCall = 0, func(l line, f *Frame) bool { return p.frame(s.bare(l.string), f) }
			}
			add(candidate{needs: p.needs, last: last, syntax: i, isCall: isCall}, first)
		}
		for _, one := range s.signs {
			add(candidate{newLine(one.needs).has, marksOf(one.lacks), marksOf(one.last), i, s.other}, marksOf(one.first))
		}
	}
	return all
}()

const (
	detectLead = 2 // by how many frames the detected language must lead
	java       = 0 // the index of Java's syntax, which is asked first
)

// scores are how many lines are calls of each syntax.
type scores struct {
	of           [len(syntaxes)]int
	best, second int     // of two runtimes
	leader       int     // the first of those with most
	call         Frame   // the last that was tried
	tried        []tried // the lines so far
}

// tried is what a line was found to be.
type tried struct {
	of   *syntax // the first of which it is a call; nil: of none
	call Frame
}

// detect returns the syntax that parses most of the first frames.
func (s *scores) detect(lines []line) *syntax {
	s.of, s.best, s.second, s.tried = [len(syntaxes)]int{}, 0, 0, s.tried[:0]
	for _, one := range lines {
		s.tried = append(s.tried, tried{})
		if s.add(one); s.best-s.second >= detectLead {
			break
		}
	}
	if s.best > 0 {
		return &syntaxes[s.leader]
	}
	for _, l := range lines[:min(len(lines), prefixLines)] {
		if frameIn(l, &s.call, rustPlaces) { // of an error without calls
			return syntaxOf(Rust)
		}
	}
	return &unknownSyntax
}

// add adds one for each syntax of which a line is a call.
func (s *scores) add(l line) {
	bare := withoutIndent(l.string)
	if bare == "" {
		return
	}
	done := uint(0) // the syntaxes that are known to read the line, or not to
	if strings.HasPrefix(bare, "at ") {
		if !javaFrame(l, &s.call) {
			done |= 1 << java
		} else if s.call.Line > 0 && strings.IndexByte(s.call.File, ':') < 0 { // in JavaScript, places have a column
			s.count(java)
			return
		}
	}
	last, ending := kinds[bare[len(bare)-1]], 0
	for endings[ending]&last == 0 {
		ending++
	}
	possible := candidates[bits.TrailingZeros64(uint64(kinds[bare[0]]))][ending]
	for i := range possible {
		c := &possible[i]
		if c.needs&^l.has == 0 && c.lacks&l.has == 0 && c.last&last != 0 && done>>c.syntax&1 == 0 && c.isCall(l, &s.call) {
			done |= 1 << c.syntax
			s.count(c.syntax)
		}
	}
}

// count counts the last call, of a syntax.
func (s *scores) count(syntax int) {
	if found := &s.tried[len(s.tried)-1]; found.of == nil {
		*found = tried{&syntaxes[syntax], s.call}
	}
	s.of[syntax]++
	n, other := s.of[syntax], s.best > 0 && syntaxes[syntax].runtime != syntaxes[s.leader].runtime
	if other {
		s.second = max(s.second, min(n, s.best))
	}
	if n > s.best || n == s.best && syntax < s.leader {
		s.best, s.leader = n, syntax
	}
}
