package ingest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// A Query is what a search asks of the content of entries; see
// ParseQuery. Its zero value matches all.
type Query struct {
	root condition
	text string
}

// String returns the query as it was written.
func (q Query) String() string { return q.text }

// Matches reports whether an entry matches.
func (q Query) Matches(entry *Stored) bool { return q.root == nil || q.root.matches(entry) }

// MayMatch reports whether a block with this header may hold a match.
func (q Query) MayMatch(header *Header) bool { return q.root == nil || q.root.mayMatch(header) }

// A condition is a part of a query. mayMatch has no false negatives.
type condition interface {
	matches(entry *Stored) bool
	mayMatch(header *Header) bool
	// mark sets which rows of a block match; false: the columns can't tell.
	mark(c *Columns, rows []bool) (known bool)
}

// eachCondition calls each with the conditions that others are made of.
func eachCondition(c condition, each func(condition)) {
	switch c := c.(type) {
	case nil:
	case all:
		for _, part := range c {
			eachCondition(part, each)
		}
	case either:
		for _, part := range c {
			eachCondition(part, each)
		}
	case negation:
		eachCondition(c.of, each)
	default:
		each(c)
	}
}

// all conditions must hold.
type all []condition

func (a all) matches(entry *Stored) bool {
	for _, c := range a {
		if !c.matches(entry) {
			return false
		}
	}
	return true
}

func (a all) mayMatch(header *Header) bool {
	for _, c := range a {
		if !c.mayMatch(header) {
			return false
		}
	}
	return true
}

// either condition must hold.
type either []condition

func (e either) matches(entry *Stored) bool {
	for _, c := range e {
		if c.matches(entry) {
			return true
		}
	}
	return false
}

func (e either) mayMatch(header *Header) bool {
	for _, c := range e {
		if c.mayMatch(header) {
			return true
		}
	}
	return false
}

type negation struct{ of condition }

func (n negation) matches(entry *Stored) bool { return !n.of.matches(entry) }
func (negation) mayMatch(*Header) bool        { return true }

// A phrase is words that stand in the message one after the other.
type phrase []pattern

func (p phrase) matches(entry *Stored) (found bool) {
	needle := p.needle()
	if !needle.mayBeIn(entry.Text) { // which is faster than to find the message
		return false
	}
	jsonPath(entryfield.Message).find(entry.Text, func(value []byte) bool {
		if value[0] == '"' {
			found = needle.mayBeIn(value) && p.in(decodedString(value))
		}
		return true
	})
	return found
}

// needle is that of the word that most texts lack, by its length.
func (p phrase) needle() (longest needle) {
	for i := range p {
		if len(p[i].needle.text) > len(longest.text) {
			longest = p[i].needle
		}
	}
	return longest
}

// in finds the phrase in a text. Bit i of begun says that the words up to
// the last one match the first i+1 of the phrase.
func (p phrase) in(text []byte) (found bool) {
	begun := uint64(0)
	eachWord(text, func(word []byte) bool {
		begun = p.advance(begun, word)
		found = begun&(1<<(len(p)-1)) != 0
		return !found
	})
	return found
}

// advance is begun behind a further word.
func (p phrase) advance(begun uint64, word []byte) uint64 {
	begun = begun<<1 | 1
	for i := range p {
		if begun&(1<<i) != 0 && !p[i].fits(word) {
			begun &^= 1 << i
		}
	}
	return begun
}

func (p phrase) mayMatch(header *Header) bool {
	for _, word := range p {
		if word.whole() && !header.Words.mayHold(word.text) {
			return false
		}
	}
	return true
}

type levels SeveritySet

func (l levels) matches(entry *Stored) bool   { return SeveritySet(l).Has(entry.Level) }
func (l levels) mayMatch(header *Header) bool { return SeveritySet(l)&header.Levels != 0 }

// inEnvironment is the entry's environment, else that of its key.
type inEnvironment pattern

func (e inEnvironment) matches(entry *Stored) bool {
	var buffer [2 * maxEnvironment]byte
	return pattern(e).fits(appendFolded(buffer[:0], []byte(entry.Environment)))
}
func (inEnvironment) mayMatch(*Header) bool { return true }

// A field is a condition on a value at one of some paths.
type field struct {
	paths  []jsonPath
	holds  func(value []byte) bool
	value  string // the only one that holds, folded; empty: there are others
	needle needle // of each entry that matches
}

func (f field) matches(entry *Stored) bool {
	if entry.Text != nil && !f.needle.mayBeIn(entry.Text) {
		return false
	}
	for _, path := range f.paths {
		if entry.find(path, f.holds) {
			return true
		}
	}
	return false
}

func (f field) mayMatch(header *Header) bool {
	return f.value == "" || header.Words.mayHoldValue(f.value) || f.isUnindexed()
}

func (f field) isUnindexed() bool { return slices.ContainsFunc(f.paths, jsonPath.isUnindexed) }

// isUnindexed reports whether values there are in no filter.
func (p jsonPath) isUnindexed() bool {
	first, rest, _ := strings.Cut(string(p), ".")
	return first == entryfield.Timestamp || first == entryfield.Error && strings.HasPrefix(rest, entryfield.ErrorStackTrace)
}

// textField compares the text of a string, number, true, false or null.
func textField(paths []jsonPath, want pattern) field {
	holds := func(value []byte) bool {
		var buffer [2 * maxValueBytes]byte
		return value[0] != '{' && value[0] != '[' && want.fits(appendText(buffer[:0], value))
	}
	f := field{paths: paths, holds: holds, needle: needleIn(want.text)}
	if want.whole() {
		f.value = want.text
	}
	return f
}

// isNumber compares numbers; a string is none.
func isNumber(operator string, want float64) func(value []byte) bool {
	return func(value []byte) bool {
		got, ok := numberOf(value)
		switch operator {
		case ">":
			return ok && got > want
		case ">=":
			return ok && got >= want
		case "<":
			return ok && got < want
		}
		return ok && got <= want
	}
}

func isPresent(value []byte) bool { return string(value) != "null" }

// A pattern is a text in lower case, with a star at one of its ends, or
// both, for any text there.
type pattern struct {
	text         string
	before, then bool   // a star before it, and behind it
	needle       needle // empty: it is not looked for first
}

func (p pattern) whole() bool { return !p.before && !p.then }

// fits reports whether a text in lower case is one of the pattern.
func (p pattern) fits(text []byte) bool {
	switch {
	case p.before && p.then:
		return strings.Contains(string(text), p.text)
	case p.before:
		return strings.HasSuffix(string(text), p.text)
	case p.then:
		return strings.HasPrefix(string(text), p.text)
	}
	return string(text) == p.text
}

// appendFolded appends a text in lower case.
func appendFolded(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		dst = utf8.AppendRune(dst, lower(r))
		i += size
	}
	return dst
}

func fold(text string) string { return string(appendFolded(nil, []byte(text))) }

// lower is one of the letters that differ by case only: σ for Σ and ς.
func lower(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }
