package soak

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/weirlog/weir/shared/outbox"
)

// A Report is the measurements at the end of each month.
type Report struct {
	FlatFrom int // day
	Looks    []Look
	written  []string // tables, sorted
}

// A Look is the measurements after so many days.
type Look struct {
	Day   int
	Sizes []Size
}

// figure is one thing that is measured every month.
type figure struct {
	Kind Kind
	Name string
}

// slack is how much something may grow beside a tenth: some things come
// and go in steps, such as files of a log.
var slack = map[Kind]int64{Rows: 16, Bytes: 512 << 10, Topic: 4 * segmentBytes, Files: 1 << 20, Memory: 8 << 20, Goroutines: 50}

// Grown lists what is not flat: in the second half of the time it
// exceeded its former maximum, or grew at each look.
func (r Report) Grown() (grown []string) {
	flat := slices.IndexFunc(r.Looks, func(look Look) bool { return look.Day >= r.FlatFrom })
	if flat < 0 {
		return []string{fmt.Sprintf("nothing was looked at from day %d on", r.FlatFrom)}
	}
	half := flat + (len(r.Looks)-flat)/2
	for _, w := range r.figures() {
		before, after := most(r.Looks[:half], w), most(r.Looks[half:], w)
		switch {
		case w.Kind == Rows && after <= byNumber[w.Name]:
		case after > before+before/10+slack[w.Kind]:
			grown = append(grown, fmt.Sprintf("%s %s: %d, and before at most %d", w.Kind, w.Name, after, before))
		case w.Kind == Rows && climbs(r.Looks[flat:], w):
			grown = append(grown, fmt.Sprintf("%s %s: %d, more every month", w.Kind, w.Name, after))
		}
	}
	return grown
}

// byNumber are tables that are bounded by a number of rows, which
// they reach later.
var byNumber = map[string]int64{"ledger.facts": outbox.Retained, "grouping.facts": outbox.Retained}

// minClimb is the number of looks that distinguishes slow growth from
// what comes and goes.
const minClimb = 4

// climbs reports whether each look showed more than the one before.
func climbs(looks []Look, w figure) bool {
	for i := 1; i < len(looks); i++ {
		if looks[i].size(w) <= looks[i-1].size(w) {
			return false
		}
	}
	return len(looks) >= minClimb
}

func most(looks []Look, w figure) (n int64) {
	for _, look := range looks {
		n = max(n, look.size(w))
	}
	return n
}

// figures returns everything that was ever measured, in the order in
// which it was found.
func (r Report) figures() (all []figure) {
	seen := map[figure]bool{}
	for _, look := range r.Looks {
		for _, size := range look.Sizes {
			if w := (figure{size.Kind, size.Name}); !seen[w] {
				all, seen[w] = append(all, w), true
			}
		}
	}
	return all
}

func (l Look) size(w figure) int64 {
	for _, size := range l.Sizes {
		if size.Kind == w.Kind && size.Name == w.Name {
			return size.N
		}
	}
	return 0
}

// Write prints a line for each thing and a column for each month.
func (r Report) Write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "day\t\t")
	for _, look := range r.Looks {
		fmt.Fprintf(table, "%d\t", look.Day)
	}
	fmt.Fprintln(table)
	for _, w := range r.figures() {
		fmt.Fprintf(table, "%s\t%s\t", w.Kind, w.Name)
		for _, look := range r.Looks {
			fmt.Fprintf(table, "%s\t", shown(w, look.size(w)))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// shown formats a number for people.
func shown(w figure, n int64) string {
	if w.Kind == Rows || w.Kind == Goroutines {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fM", float64(n)/(1<<20))
}
