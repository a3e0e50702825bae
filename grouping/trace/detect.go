package trace

import "strings"

// sign tells which lines may be calls of a runtime, so that few runtimes
// are asked about a line. Any digit stands for all, and any capital.
type sign struct {
	needs, lacks string // what all of them hold, and what none does
	first, last  string // one of which begins or ends them, blanks aside; empty: anything
}

// candidate is a syntax that may read lines with a sign.
type candidate struct {
	needs, lacks, first, last marks
	syntax                    int
}

// candidates are those for lines that begin with "at ", and for others.
var atCandidates, candidates = func() (at, other []candidate) {
	for i := range syntaxes {
		for k := range syntaxes[i].forms {
			if p := &syntaxes[i].forms[k]; strings.HasPrefix(p.begin, "at ") {
				at = append(at, sign{}.candidate(i, p.needs))
			} else {
				other = append(other, sign{first: p.first(&syntaxes[i])}.candidate(i, p.needs))
			}
		}
		for _, s := range syntaxes[i].signs {
			other = append(other, s.candidate(i, marksOf(s.needs)))
		}
		for _, needs := range syntaxes[i].at {
			at = append(at, sign{}.candidate(i, marksOf(needs)))
		}
	}
	return at, other
}()

func (s sign) candidate(syntax int, needs marks) candidate {
	c := candidate{needs, marksOf(s.lacks), marksOf(s.first), marksOf(s.last), syntax}
	if s.first == "" {
		c.first = ^marks(0)
	}
	if s.last == "" {
		c.last = ^marks(0)
	}
	return c
}

// detectLead is by how many frames the detected language must lead.
const detectLead = 2

// scores are how many lines are calls of each syntax.
type scores struct {
	of           [len(syntaxes)]int
	best, second int
}

// detect returns the syntax that parses most of the first frames.
func detect(lines []string) *syntax {
	var score scores
	for _, line := range lines {
		if score.add(line); score.best-score.second >= detectLead {
			break
		}
	}
	if score.best == 0 {
		return detectPlace(lines)
	}
	for i := range score.of {
		if score.of[i] == score.best {
			return &syntaxes[i]
		}
	}
	return &unknownSyntax
}

// add adds one for each syntax of which a line is a call.
func (s *scores) add(line string) {
	bare := line[leadingSpace(line):]
	if bare == "" {
		return
	}
	possible := candidates
	if strings.HasPrefix(bare, "at ") {
		if f, ok := javaFrame(bare); ok && isJavaAlone(f) {
			s.count(java)
			return
		}
		possible = atCandidates
	}
	m, asked := marksOf(line), -1
	first, last := kinds[bare[0]], kinds[bare[len(bare)-1]]
	for i := range possible {
		c := &possible[i]
		if c.needs&^m != 0 || c.lacks&m != 0 || c.first&first == 0 || c.last&last == 0 || c.syntax == asked {
			continue
		}
		asked = c.syntax
		if _, ok := syntaxes[asked].frame(line); ok {
			s.count(asked)
		}
	}
}

// java is the index of Java's syntax, which is asked first.
const java = 0

// count counts a call of a syntax.
func (s *scores) count(syntax int) {
	s.of[syntax]++
	s.best, s.second = 0, 0
	for _, n := range s.of {
		s.second = max(s.second, min(s.best, n))
		s.best = max(s.best, n)
	}
}

// detectPlace returns the syntax of an error without calls.
func detectPlace(lines []string) *syntax {
	for _, line := range lines[:min(len(lines), prefixLines)] {
		for i := range syntaxes {
			if s := &syntaxes[i]; s.has(callless) && s.place(line).File != "" {
				return s
			}
		}
	}
	return &unknownSyntax
}
