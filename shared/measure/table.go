package measure

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// A Table is figures in columns.
type Table struct{ *tabwriter.Writer }

// NewTable begins a table below the machine and what is measured.
func NewTable(out io.Writer, about string) Table {
	fmt.Fprintf(out, "\n%d cores, %s/%s, %s. %s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), about)
	return Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// Row adds a line.
func (t Table) Row(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }

// Goal says whether a goal is met.
func Goal(met bool, goal string, values ...any) string {
	if met {
		return "met: " + fmt.Sprintf(goal, values...)
	}
	return "MISSED: " + fmt.Sprintf(goal, values...)
}

// Millis shows durations in milliseconds.
func Millis(all ...time.Duration) string {
	return join(all, "ms", func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) })
}

// Micros shows durations in microseconds.
func Micros(all ...time.Duration) string {
	return join(all, "µs", func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Microsecond)) })
}

// Megabytes shows bytes in MB.
func Megabytes(all ...int64) string {
	return join(all, "MB", func(n int64) string { return fmt.Sprint(n >> 20) })
}

func join[T any](all []T, unit string, text func(T) string) string {
	cells := make([]string, len(all))
	for i, value := range all {
		cells[i] = text(value)
	}
	return strings.Join(cells, " / ") + " " + unit
}
