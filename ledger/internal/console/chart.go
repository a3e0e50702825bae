package console

import (
	"cmp"
	"net/url"
	"slices"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/ui"
)

// The drawing in its own units; the page scales it.
const (
	chartWidth  = 1000
	chartHeight = 200
	columnGap   = 4
)

// maxSeries is how many series have their own color; the rest are one.
const maxSeries = 6

// A chart is usage as stacked columns and as a table.
type chart struct {
	By      string // the dimension of its series
	Of      string // unit: "bytes" or "requests"
	Series  []series
	Columns []column
	Total   int64
	Max     int64 // of a column
	Cut     bool  // it lacks some usage
}

// A series is one project, key, environment or outcome.
type series struct {
	Name  string
	Color int
	Total int64
}

// A column is one day or hour.
type column struct {
	At     time.Time
	Values []int64 // by series
	Total  int64
	Parts  []part
	Hours  string // the address of the day's hours; empty where it is an hour
}

// A part is a rectangle.
type part struct {
	Color, X, Y, Width, Height int
}

// newChart stacks uses into buckets. name returns a series' name.
func newChart(uses []ledger.Use, by postgres.Dimension, starts []time.Time, name func(id string) string) chart {
	c := chart{By: string(by), Of: "bytes", Columns: make([]column, len(starts))}
	value := func(u ledger.Use) int64 { return u.Bytes }
	if by == postgres.ByOutcome { // refused bytes are no usage
		c.Of, value = "requests", func(u ledger.Use) int64 { return u.Requests }
	}
	totals := map[string]int64{}
	for _, use := range uses {
		totals[idOf(use, by)] += value(use)
	}
	places := c.addSeries(totals, name)
	index := make(map[time.Time]int, len(starts))
	for i, at := range starts {
		c.Columns[i], index[at] = column{At: at, Values: make([]int64, len(c.Series))}, i
	}
	for _, use := range uses {
		if i, shown := index[use.Hour]; shown && value(use) > 0 {
			c.Columns[i].Values[places[idOf(use, by)]] += value(use)
			c.Columns[i].Total += value(use)
			c.Total += value(use)
		}
	}
	c.draw()
	return c
}

// idOf returns the series of a use.
func idOf(use ledger.Use, by postgres.Dimension) string {
	switch by {
	case postgres.ByKey:
		return use.Key
	case postgres.ByEnvironment:
		return use.Environment
	case postgres.ByOutcome:
		return use.Outcome
	}
	return use.Project
}

// addSeries adds the series with the largest totals, the largest first,
// and one for the rest. places maps each name to its series.
func (c *chart) addSeries(totals map[string]int64, name func(id string) string) (places map[string]int) {
	ids := make([]string, 0, len(totals))
	for id, total := range totals {
		if total > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b)) })
	places = make(map[string]int, len(ids))
	for i, id := range ids {
		if i < maxSeries {
			c.Series = append(c.Series, series{Name: name(id), Color: i})
		} else if i == maxSeries {
			c.Series = append(c.Series, series{Name: "all others", Color: i})
		}
		places[id] = min(i, maxSeries)
		c.Series[places[id]].Total += totals[id]
	}
	return places
}

// draw places the rectangles, the first series at the bottom.
func (c *chart) draw() {
	for _, column := range c.Columns {
		c.Max = max(c.Max, column.Total)
	}
	if c.Max == 0 {
		return
	}
	step := chartWidth / len(c.Columns)
	for i := range c.Columns {
		column, below := &c.Columns[i], int64(0)
		for s, value := range column.Values {
			from, to := scaled(below, c.Max), scaled(below+value, c.Max)
			if below += value; to > from {
				column.Parts = append(column.Parts, part{Color: c.Series[s].Color, X: i * step, Y: chartHeight - to, Width: step - columnGap, Height: to - from})
			}
		}
	}
}

// scaled returns a value's height, where most is the full height.
func scaled(value, most int64) int {
	for most > 1<<50 {
		value, most = value>>1, most>>1
	}
	return int(value * chartHeight / most)
}

// Show formats a value.
func (c chart) Show(n int64) string {
	if c.Of == "bytes" {
		return ui.Bytes(n)
	}
	return ui.Count(n)
}

// Last is when the last column begins.
func (c chart) Last() time.Time { return c.Columns[len(c.Columns)-1].At }

// Empty reports whether there is nothing to draw.
func (c chart) Empty() bool { return c.Total == 0 }

// hoursAddress returns the link to the hours of a day.
func hoursAddress(by postgres.Dimension, day time.Time) string {
	return "/console/usage?" + url.Values{"by": {string(by)}, "day": {day.Format(time.DateOnly)}}.Encode()
}
