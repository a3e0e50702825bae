package bus

import (
	"cmp"
	"strings"

	"github.com/weirlog/weir/grouping"
)

// The things that are read from metadata.
const (
	ofRelease = iota
	ofService
	ofUser
	ofHost
	things
)

// metadata is what was found at the paths of a project: for
// each thing MaxPaths values, the first that is not empty counts.
type metadata [things * grouping.MaxPaths]string

func (m *metadata) value(of int) string {
	return cmp.Or(m[of*grouping.MaxPaths : (of+1)*grouping.MaxPaths]...)
}

// A path leads from an object to a place in metadata.
type path struct {
	rest     string
	place    int
	numbers  bool // count as texts do
	booleans bool
}

func (p path) takes(begins byte) bool {
	return begins == '"' || p.numbers && (begins == '-' || begins >= '0' && begins <= '9') || p.booleans && (begins == 't' || begins == 'f')
}

func pathsOf(set grouping.Paths) (paths []path) {
	for thing, of := range [things][]string{ofRelease: set.Release, ofService: set.Service, ofUser: set.User, ofHost: set.Host} {
		for i, rest := range of[:min(len(of), grouping.MaxPaths)] {
			paths = append(paths, path{rest: rest, place: thing*grouping.MaxPaths + i, numbers: thing == ofUser})
		}
	}
	return paths
}

// pick reads what is at the paths of an object, into their places.
func (s *scanner) pick(paths []path, into []string) {
	if s.peek() != '{' {
		s.skip()
		return
	}
	s.object(func(name string) {
		var below []path
		begins := s.peek()
		value, read := "", false
		for _, p := range paths {
			rest, on := strings.CutPrefix(p.rest, name)
			switch {
			case !on:
			case strings.HasPrefix(rest, ".") && begins == '{':
				p.rest = rest[1:]
				below = append(below, p)
			case rest == "" && p.takes(begins):
				if !read {
					value, read = s.scalar(), true
				}
				into[p.place] = value
			}
		}
		switch {
		case len(below) > 0:
			s.pick(below, into)
		case !read:
			s.skip()
		}
	})
}

// contextOf is what rules ask of an entry; nil: there are none.
func contextOf(e entry, o grouping.Occurrence, learned grouping.Learned) *grouping.EntryContext {
	asked := learned.Asked(o.Accepted)
	if learned.Rules.Empty() && len(asked) == 0 {
		return nil
	}
	context := &grouping.EntryContext{Service: o.Service, Environment: o.Environment}
	if len(asked) == 0 {
		return context
	}
	context.Metadata = map[string]string{} // bounded by the paths
	values := make([]string, len(asked))
	if e.metadataText != "" {
		paths := make([]path, len(asked))
		for i, rest := range asked {
			paths[i] = path{rest: rest, place: i, numbers: true, booleans: true}
		}
		s := scanner{text: e.metadataText}
		s.pick(paths, values)
	}
	for i, rest := range asked {
		context.Metadata[rest] = values[i]
	}
	return context
}

// scalar reads a text or a number.
func (s *scanner) scalar() string {
	if s.peek() == '"' {
		return oneLine(s.string())
	}
	from := s.at
	s.skipLiteral()
	return s.text[from:s.at]
}
