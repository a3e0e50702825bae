package ingest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// A finder returns the next place at or behind from that a pattern matches;
// -1: there is none.
type finder func(text []byte, from int) (start, end int)

// A redactor is a pattern and what stands instead of its matches.
type redactor struct {
	find       finder // nil: the expression does
	needs      uint8  // what its matches have, of hints
	label      string
	expression *regexp.Regexp // of the project
}

// each calls add with the matches in a text. An expression of a project that
// finds too much has all of the text: each find can cost as much as reading it.
func (r *redactor) each(text []byte, add func(start, end int)) {
	if r.find != nil {
		for from := 0; from < len(text); {
			start, end := r.find(text, from)
			if start < 0 {
				return
			}
			add(start, end)
			from = end
		}
		return
	}
	if !r.expression.Match(text) { // which allocates nothing
		return
	}
	most := min(maxFinds, max(1, maxReread/len(text)))
	found := r.expression.FindAllIndex(text, most+1)
	if len(found) > most {
		add(0, len(text))
		return
	}
	for _, at := range found {
		if at[0] < at[1] {
			add(at[0], at[1])
		}
	}
}

// A redaction is a part of a text for which another stands.
type redaction struct {
	start, end int
	with       string
	number     bool // it is a whole number, and becomes a string
}

// A seeker finds what a rule redacts in an entry, and reuses its memory.
type seeker struct {
	text    []byte
	rule    *IngestRule
	cuts    []redaction // in the entry, in order
	matches []redaction // in a string, decoded
	decoded []byte
	names   map[string]bool // of fields, whether they are a secret's; bounded by maxNames
	late    func() bool     // asked after each text in which an expression finds something
	stopped bool            // it was late: the rest of the entry is not looked at
}

// maxNames is how many names of fields are remembered.
const maxNames = 1000

// redact redacts an entry's compact text in place. It is never longer than
// before, so no entry outgrows a limit.
func (s *seeker) redact(rule *IngestRule, text []byte) (redacted []byte, changed bool) {
	s.text, s.rule, s.cuts = text, rule, s.cuts[:0]
	if rule.paths == nil {
		s.members(0, s.member)
	} else {
		for _, path := range rule.paths {
			s.path(path)
		}
		s.cuts = withoutOverlaps(s.cuts)
	}
	if len(s.cuts) == 0 {
		return text, false
	}
	kept, last := 0, 0
	for _, c := range s.cuts {
		kept += copy(text[kept:], text[last:c.start])
		kept += copy(text[kept:], c.instead())
		last = c.end
	}
	kept += copy(text[kept:], text[last:])
	return text[:kept], true
}

// stars stand for what is shorter than its label, whatever its length.
const stars = "***"

// instead is at most as long as what it stands for.
func (c redaction) instead() string {
	room := c.end - c.start
	switch {
	case !c.number && len(c.with) <= room:
		return c.with
	case !c.number:
		return stars[:min(len(stars), room)]
	case len(c.with)+2 <= room:
		return `"` + c.with + `"`
	case room > 2:
		return `"` + stars[:min(len(stars), room-2)] + `"`
	}
	return "0"
}

// path looks at the values at a path.
func (s *seeker) path(path jsonPath) {
	named, behind := s.rule.named && isSecretPath(path), 0
	path.find(s.text, func(value []byte) bool {
		switch at := cap(s.text) - cap(value); {
		case at < behind: // an element of an array that came before it
		case path == entryfield.Error && value[0] == '{':
			behind = s.members(at, s.errorMember)
		default:
			behind = s.value(at, named)
		}
		return false
	})
}

// isSecretPath reports whether a name on a path, which may have dots, is a secret's.
func isSecretPath(path jsonPath) bool {
	for name := range strings.SplitSeq(string(path), ".") {
		if isSecretName([]byte(name)) {
			return true
		}
	}
	return isSecretName([]byte(path))
}

// members calls each with the members of the object at i, at their values.
func (s *seeker) members(i int, each func(name []byte, at int) int) int {
	for i++; s.text[i] != '}'; {
		if s.text[i] == ',' {
			i++
		}
		colon := stringEnd(s.text, i)
		i = each(s.text[i:colon], colon+1)
	}
	return i + 1
}

// member looks at a member of the entry, whose name has a meaning.
func (s *seeker) member(name []byte, at int) int {
	switch string(decodedString(name)) {
	case entryfield.Timestamp, entryfield.Level, entryfield.Environment:
		return valueEnd(s.text, at)
	case entryfield.Error:
		if s.text[at] == '{' {
			return s.members(at, s.errorMember)
		}
	case entryfield.Message, entryfield.Metadata, entryfield.ProjectID:
	default:
		s.name(name, at)
	}
	return s.value(at, s.isNamed(name))
}

// errorMember looks at a member of the entry's error.
func (s *seeker) errorMember(name []byte, at int) int {
	switch string(decodedString(name)) {
	case entryfield.ErrorType, entryfield.ErrorMessage, entryfield.ErrorStackTrace, entryfield.ErrorContext:
	default:
		s.name(name, at)
	}
	return s.value(at, s.isNamed(name))
}

// name looks at the name, in quotes, of the member whose value is at at.
func (s *seeker) name(name []byte, at int) { s.str(at-1-len(name), at-1, false) }

// isNamed reports whether a field with a name, in quotes, is redacted for that.
func (s *seeker) isNamed(name []byte) bool {
	if !s.rule.named || len(name) > 2*maxSecretName {
		return s.rule.named && isSecretName(decodedString(name))
	}
	secret, known := s.names[string(name)]
	if !known {
		if secret = isSecretName(decodedString(name)); s.names == nil || len(s.names) == maxNames {
			s.names = map[string]bool{}
		}
		s.names[string(name)] = secret
	}
	return secret
}

// value looks at the value at i, all of which is secret if its name says so,
// and returns the offset behind it.
func (s *seeker) value(i int, named bool) int {
	switch c := s.text[i]; {
	case c == '{':
		return s.members(i, func(name []byte, at int) int {
			s.name(name, at)
			return s.value(at, named || s.isNamed(name))
		})
	case c == '[':
		for i++; s.text[i] != ']'; {
			if s.text[i] == ',' {
				i++
			}
			i = s.value(i, named)
		}
		return i + 1
	case c == '"':
		end := stringEnd(s.text, i)
		s.str(i, end, named)
		return end
	default:
		end := scalarEnd(s.text, i)
		if c == '-' || '0' <= c && c <= '9' {
			s.number(i, end, named)
		}
		return end
	}
}

const passwordLabel = "[" + passwordPattern + "]"

func (s *seeker) number(start, end int, named bool) {
	with := passwordLabel
	for i := 0; i < len(s.rule.what) && !named; i++ {
		if s.rule.what[i].find != nil && end-start < minCard { // no other pattern finds a number
			continue
		}
		s.rule.what[i].each(s.text[start:end], func(int, int) { named, with = true, s.rule.what[i].label })
	}
	if named {
		s.cuts = append(s.cuts, redaction{start: start, end: end, with: with, number: true})
	}
}

// str looks at the string in quotes from start to end.
func (s *seeker) str(start, end int, named bool) {
	raw := s.text[start+1 : end-1]
	escaped := bytes.IndexByte(raw, '\\') >= 0
	text := raw
	if escaped {
		s.decoded = unescape(s.decoded[:0], raw)
		text = s.decoded
	}
	s.matches = s.matches[:0]
	if named && len(text) > 0 {
		s.matches = append(s.matches, redaction{end: len(text), with: passwordLabel})
	}
	has := hintsIn(text)
	for i := 0; i < len(s.rule.what) && !named && !s.stopped; i++ {
		redactor := &s.rule.what[i]
		if has&redactor.needs != redactor.needs {
			continue
		}
		redactor.each(text, func(from, to int) {
			for from > 0 && !utf8.RuneStart(text[from]) {
				from--
			}
			for to < len(text) && !utf8.RuneStart(text[to]) {
				to++
			}
			s.matches = append(s.matches, redaction{start: from, end: to, with: redactor.label})
		})
		s.stopped = redactor.expression != nil && len(s.matches) > 0 && s.late()
	}
	if len(s.matches) == 0 {
		return
	}
	s.matches = withoutOverlaps(s.matches)
	if !escaped {
		for _, m := range s.matches {
			s.cuts = append(s.cuts, redaction{start: start + 1 + m.start, end: start + 1 + m.end, with: m.instead()})
		}
		return
	}
	s.cutEscaped(raw, start+1)
}

// cutEscaped finds the matches in a string with escape sequences.
func (s *seeker) cutEscaped(raw []byte, base int) {
	at, meant := 0, 0 // offsets in the string, and in what it means
	seek := func(to int) int {
		for meant < to {
			size, means := 1, 1
			if raw[at] == '\\' {
				var r rune
				r, size = unescapeOne(raw[at:])
				means = utf8.RuneLen(r)
			}
			at, meant = at+size, meant+means
		}
		return base + at
	}
	for _, m := range s.matches {
		start := seek(m.start)
		s.cuts = append(s.cuts, redaction{start: start, end: seek(m.end), with: m.instead()})
	}
}

// withoutOverlaps sorts cuts, and joins those that overlap.
func withoutOverlaps(cuts []redaction) []redaction {
	if len(cuts) < 2 {
		return cuts
	}
	slices.SortStableFunc(cuts, func(a, b redaction) int { return a.start - b.start })
	list := cuts[:1]
	for _, c := range cuts[1:] {
		if last := &list[len(list)-1]; c.start < last.end {
			last.end = max(last.end, c.end)
			continue
		}
		list = append(list, c)
	}
	return list
}
