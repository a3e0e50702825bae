package trace

import (
	"strings"

	"github.com/weirlog/weir/grouping/trace/words"
)

// wordSet makes a set of the words of s.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(s) {
		set[word] = true
	}
	return set
}

// prefixes are beginnings of names, found by the first byte and the fifth, as
// "org." says little. Shorter ones are at each fifth byte.
type prefixes [256]*[256][]string

const tellingByte = 4

func prefixesOf(s string, more ...string) *prefixes {
	var p prefixes
	for _, one := range append(strings.Fields(s), more...) {
		if p[one[0]] == nil {
			p[one[0]] = &[256][]string{}
		}
		for c := range p[one[0]] {
			if len(one) <= tellingByte || int(one[tellingByte]) == c {
				p[one[0]][c] = append(p[one[0]][c], one)
			}
		}
	}
	return &p
}

// of are those with which name may begin.
func (p *prefixes) of(name string) []string {
	switch {
	case name == "" || p[name[0]] == nil:
		return nil
	case len(name) <= tellingByte:
		return p[name[0]][0]
	}
	return p[name[0]][name[tellingByte]]
}

// begin reports whether name begins with one.
func (p *prefixes) begin(name string) bool { return beginsWithAny(name, p.of(name)) }

// contains reports whether a name or a beginning of it, up to a dot, is among them.
func (p *prefixes) contains(name string) bool {
	for _, one := range p.of(name) {
		if rest, ok := strings.CutPrefix(name, one); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

var vocabulary = wordSet(words.Vocabulary)
