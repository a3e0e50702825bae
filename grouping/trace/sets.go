package trace

import (
	"slices"
	"strings"
)

// wordSet makes a set of the words of s.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(s) {
		set[word] = true
	}
	return set
}

// prefixes are beginnings of names, sorted, by their first byte; none begins with another and a dot.
type prefixes [256][]string

func prefixesOf(s string, more ...string) *prefixes {
	var p prefixes
	all := append(strings.Fields(s), more...)
	slices.Sort(all)
	for _, one := range all {
		p[one[0]] = append(p[one[0]], one)
	}
	return &p
}

// begin reports whether name begins with one, of a set in which none begins with another.
func (p *prefixes) begin(name string) bool {
	_, ok := p.cut(name)
	return ok
}

// contains reports whether a name or a beginning of it, up to a dot, is among them. "javax" is behind "java.", as
// letters are behind dots.
func (p *prefixes) contains(name string) bool {
	rest, ok := p.cut(name)
	return ok && (rest == "" || rest[0] == '.')
}

// cut cuts off the one with which name begins.
func (p *prefixes) cut(name string) (rest string, ok bool) {
	if name == "" {
		return "", false
	}
	some := p[name[0]]
	i, equal := slices.BinarySearch(some, name)
	switch {
	case equal:
		return "", true
	case i == 0:
		return name, false
	}
	return strings.CutPrefix(name, some[i-1])
}

// marks is a set of kinds of bytes. Each punctuation mark, each small letter, the blank and the tab are one; digits are
// one, and so are capitals, "^" and "~", and all others.
type marks uint64

// numbered is in the marks of lines with a colon before a number.
const numbered marks = 1 << 63

// kinds are the kinds of all bytes.
var kinds = func() (kinds [256]marks) {
	next := marks(1)
	for c := range kinds {
		if alike := likeOf(byte(c)); int(alike) < c { //nolint:gosec // below 256
			kinds[c] = kinds[alike]
			continue
		}
		kinds[c], next = next, next<<1
	}
	return kinds
}()

// likeOf is the first byte of the kind of c.
func likeOf(c byte) byte {
	switch {
	case isDigit(c):
		return '0'
	case isUpper(c):
		return 'A'
	case c == '~':
		return '^'
	case c > '~':
		return '~' + 1
	case c < ' ' && c != '\t':
		return 0
	}
	return c
}

// marksOf is the set of the bytes in s.
func marksOf(s string) (m marks) {
	for len(s) >= 8 { // faster than one by one
		m |= kinds[s[0]] | kinds[s[1]] | kinds[s[2]] | kinds[s[3]] | kinds[s[4]] | kinds[s[5]] | kinds[s[6]] | kinds[s[7]]
		s = s[8:]
	}
	for i := range len(s) {
		m |= kinds[s[i]]
	}
	return m
}

func (m marks) has(c byte) bool { return m&kinds[c] != 0 }

var decimals = marksOf("0")

// trim is strings.Trim. Package strings makes a set in each call, which costs more than the search.
func (m marks) trim(s string) string {
	return m.trimRight(m.trimLeft(s))
}

// trimRight is strings.TrimRight.
func (m marks) trimRight(s string) string {
	end := len(s)
	for end > 0 && m.has(s[end-1]) {
		end--
	}
	return s[:end]
}

// trimLeft is strings.TrimLeft.
func (m marks) trimLeft(s string) string {
	begin := 0
	for begin < len(s) && m.has(s[begin]) {
		begin++
	}
	return s[begin:]
}

// occursIn is strings.ContainsAny.
func (m marks) occursIn(s string) bool { return m&marksOf(s) != 0 }

// afterLast is what follows the last byte of the set in s; all of s without one.
func (m marks) afterLast(s string) string {
	for i := len(s) - 1; i >= 0; i-- {
		if m.has(s[i]) {
			return s[i+1:]
		}
	}
	return s
}
