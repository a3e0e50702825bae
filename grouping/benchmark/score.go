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

func (s *share) add(other share) { s.n, s.of = s.n+other.n, s.of+other.of }

func (s share) String() string {
	if s.of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d/%d", s.n, s.of)
}

// score is how a rule groups the errors of a matrix: of the
// variants those in the group of their first occurrence,
// by column, and of the pairs of faults those apart.
type score struct {
	columns map[string]*share // bounded by the columns of the table
	kept    share
	apart   share
}

// score also tells moved, if it is not nil, what counts against the rule.
func (m matrix) score(key keyOf, moved func(f, other fault, o *occurrence)) score {
	var g grouping.Grouper
	s := score{columns: map[string]*share{}}
	for _, column := range columns {
		s.columns[column] = &share{}
	}
	keys := make([]string, len(m.faults))
	for i, f := range m.faults {
		keys[i] = key(&g, f.base)
		for k := range f.again {
			o := &f.again[k]
			same := key(&g, o.Error) == keys[i]
			s.columns[o.column].count(same)
			if s.kept.count(same); !same && moved != nil {
				moved(f, f, o)
			}
		}
		for k, other := range m.faults[:i] {
			if s.apart.count(keys[i] != keys[k]); keys[i] == keys[k] && moved != nil {
				moved(f, other, nil)
			}
		}
	}
	return s
}

// total scores all matrices as one.
func total(all []matrix, key keyOf) (sum score) {
	for _, m := range all {
		s := m.score(key, nil)
		sum.kept.add(s.kept)
		sum.apart.add(s.apart)
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
		s := m.score(deciding().keyOf, nil)
		fmt.Fprintf(out, "%s\t%v\t%v", m.platform, s.kept, s.apart)
		for _, column := range columns {
			fmt.Fprintf(out, "\t%v", s.columns[column])
		}
		fmt.Fprintln(out)
		if m.missing != "" {
			fmt.Fprintf(out, "  without %s\n", m.missing)
		}
	}
	s := total(all, deciding().keyOf)
	fmt.Fprintf(out, "all\t%v\t%v\n", s.kept, s.apart)
}

// printMoved prints what the table counts against Weir.
func printMoved(out io.Writer, all []matrix) {
	var g grouping.Grouper
	for _, m := range all {
		m.score(deciding().keyOf, func(f, other fault, o *occurrence) {
			why := g.Fingerprint(f.base).Explain().Parts
			if o == nil {
				fmt.Fprintf(out, "%s, %s and %s are one: %q\n", m.platform, other.bug, f.bug, why)
				return
			}
			fmt.Fprintf(out, "%s, %s, %s:\n  was %q\n  is  %q\n", m.platform, f.bug, o.name, why, g.Fingerprint(o.Error).Explain().Parts)
		})
	}
}
