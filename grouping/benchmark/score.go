package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirlog/weir/grouping"
)

// share is how many of some there are.
type share struct{ n, of int }

func (s *share) count(counts bool) {
	s.of++
	if counts {
		s.n++
	}
}

func (s share) String() string {
	if s.of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d/%d", s.n, s.of)
}

// keyOf is the key by which a rule groups an error.
type keyOf func(g *grouping.Grouper, sent grouping.Error) string

func atLevel(level grouping.Level) keyOf {
	return func(g *grouping.Grouper, sent grouping.Error) string {
		return g.Fingerprint(sent).At(level).Hash.String()
	}
}

// score is how a rule groups the errors of a matrix: of the
// variants those in the group of their first occurrence,
// by column, and of the pairs of faults those apart.
type score struct {
	columns map[string]*share // bounded by the columns of the table
	kept    share
	apart   share
}

func (m matrix) score(key keyOf) score {
	var g grouping.Grouper
	s := score{columns: map[string]*share{}}
	keys := make([]string, len(m.faults))
	for i, f := range m.faults {
		keys[i] = key(&g, f.base)
		for _, other := range keys[:i] {
			s.apart.count(keys[i] != other)
		}
		for _, o := range f.again {
			if s.columns[o.column] == nil {
				s.columns[o.column] = &share{}
			}
			same := key(&g, o.Error) == keys[i]
			s.columns[o.column].count(same)
			s.kept.count(same)
		}
	}
	return s
}

// total scores all matrices as one.
func total(all []matrix, key keyOf) (sum score) {
	for _, m := range all {
		s := m.score(key)
		sum.kept, sum.apart = share{sum.kept.n + s.kept.n, sum.kept.of + s.kept.of}, share{sum.apart.n + s.apart.n, sum.apart.of + s.apart.of}
	}
	return sum
}

var columns = strings.Split("folder,lines,values,1 caller,3 callers,one string,form,build,version", ",")

// printMatrices prints one line for each platform.
func printMatrices(out io.Writer, all []matrix) {
	fmt.Fprintf(out, "Errors of programs: variants in the group of their first occurrence, by what varies, and pairs of faults apart.\n\n")
	fmt.Fprintf(out, "platform\tkept\tapart\t%s\n", strings.Join(columns, "\t"))
	for _, m := range all {
		if len(m.faults) == 0 {
			fmt.Fprintf(out, "%s\t%s\n", m.platform, m.missing)
			continue
		}
		s := m.score(atLevel(deciding()))
		fmt.Fprintf(out, "%s\t%v\t%v", m.platform, s.kept, s.apart)
		for _, column := range columns {
			if s.columns[column] == nil {
				s.columns[column] = &share{}
			}
			fmt.Fprintf(out, "\t%v", s.columns[column])
		}
		fmt.Fprintln(out)
		if m.missing != "" {
			fmt.Fprintf(out, "  without %s\n", m.missing)
		}
	}
	s := total(all, atLevel(deciding()))
	fmt.Fprintf(out, "all\t%v\t%v\n", s.kept, s.apart)
}

// printMoved prints what the table counts against Weir.
func printMoved(out io.Writer, all []matrix) {
	var g grouping.Grouper
	key := atLevel(deciding())
	for _, m := range all {
		for i, f := range m.faults {
			why := g.Fingerprint(f.base).Explain().Parts
			for _, o := range f.again {
				if key(&g, o.Error) != key(&g, f.base) {
					fmt.Fprintf(out, "%s, %s, %s:\n  was %q\n  is  %q\n", m.platform, f.bug, o.name, why, g.Fingerprint(o.Error).Explain().Parts)
				}
			}
			for _, other := range m.faults[:i] {
				if key(&g, other.base) == key(&g, f.base) {
					fmt.Fprintf(out, "%s, %s and %s are one: %q\n", m.platform, other.bug, f.bug, why)
				}
			}
		}
	}
}
