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
	rest  string
	place int
}

func pathsOf(set grouping.Paths) (paths []path) {
	for thing, of := range [things][]string{ofRelease: set.Release, ofService: set.Service, ofUser: set.User, ofHost: set.Host} {
		for i, rest := range of[:min(len(of), grouping.MaxPaths)] {
			paths = append(paths, path{rest, thing*grouping.MaxPaths + i})
		}
	}
	return paths
}

// pick reads what is at the paths of an object: texts, and the numbers of users.
func (s *scanner) pick(paths []path, into *metadata) {
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
				below = append(below, path{rest[1:], p.place})
			case rest == "" && (begins == '"' || isNumber(begins) && p.place/grouping.MaxPaths == ofUser):
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

func isNumber(begins byte) bool { return begins == '-' || begins >= '0' && begins <= '9' }

// scalar reads a text or a number.
func (s *scanner) scalar() string {
	if s.peek() == '"' {
		return oneLine(s.string())
	}
	from := s.at
	s.skipLiteral()
	return s.text[from:s.at]
}
