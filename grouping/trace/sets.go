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
	after, end := 0, len(some) // of the last that is not behind name
	for after < end {
		if middle := (after + end) / 2; some[middle] <= name {
			after = middle + 1
		} else {
			end = middle
		}
	}
	if after == 0 {
		return name, false
	}
	return strings.CutPrefix(name, some[after-1])
}
