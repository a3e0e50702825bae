package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
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
	Dropped int64 // entries that clients say they dropped, by outcome
	Ruled   int64 // entries that rules left out, by outcome
	Columns []column
	Total   int64
	Max     int64 // of a column
	Cut     bool  // it lacks some usage
}

// A series is one project, key, environment or outcome.
type series struct {
	Name  string
	ID    string // of a project or key, where names may repeat
	Color int
	Total int64
}

// A column is one day or hour.
type column struct {
	At     time.Time
	Values []int64 // by series
	Total  int64
	Parts  []part
	Box    part   // its whole height, to point at
	Hours  string // the address of the day's hours; empty where it is an hour
}

// Text describes a column for those who point at it.
func (c chart) Text(of column) string {
	text := ui.Instant(of.At)
	if of.Hours != "" {
		text = of.At.Format(time.DateOnly)
	}
	text += ": " + c.Show(of.Total)
	for i, value := range of.Values {
		if value > 0 {
			text += fmt.Sprintf(", %s %s", c.Series[i].Name, c.Show(value))
		}
	}
	return text
}

// Half is half of the highest column, for the scale.
func (c chart) Half() int64 { return c.Max / 2 }

// Middle is the column in the middle, for the axis.
func (c chart) Middle() column { return c.Columns[len(c.Columns)/2] }

// ShowsID reports whether names may repeat, so that ids tell them apart.
func (c chart) ShowsID() bool { return c.By == string(postgres.ByKey) }

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
			c.Series = append(c.Series, series{Name: name(id), ID: id, Color: i})
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
		column.Box = part{X: i * step, Width: step, Height: chartHeight}
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

// chartUses is the most sums that a chart reads.
const chartUses = 5000

// views are the dimensions of charts.
var views = []postgres.Dimension{postgres.ByProject, postgres.ByKey, postgres.ByEnvironment, postgres.ByOutcome}

// A view is a link to the usage by another dimension.
type view struct {
	Text, Href string
	Current    bool
}

// A usageView is a period by day, or a day by hour.
type usageView struct {
	by  postgres.Dimension
	day time.Time // zero: the period
}

func usageViewOf(r *http.Request) (v usageView, err error) {
	query := r.URL.Query()
	v.by = postgres.Dimension(query.Get("by"))
	if !query.Has("by") {
		v.by = postgres.ByProject
	}
	if !slices.Contains(views, v.by) {
		return v, httpapi.Invalid("?by", httpapi.CodeInvalidRequest, "Usage can't be shown by that.", "Use project, key, environment or outcome.")
	}
	if text := query.Get("day"); text != "" {
		if v.day, err = time.Parse(time.DateOnly, text); err != nil {
			return v, httpapi.Invalid("?day", httpapi.CodeInvalidRequest, "That is no day.", "Use a day such as 2026-11-20.")
		}
	}
	return v, nil
}

// span returns a view's part of a period and the starts of its columns.
func (v usageView) span(period calendar.Period) (bucket postgres.Bucket, starts []time.Time, end time.Time) {
	bucket, at, end, step := postgres.ByDay, period.Start, period.End, 24*time.Hour
	if !v.day.IsZero() {
		bucket, at, end, step = postgres.ByHour, v.day, v.day.AddDate(0, 0, 1), time.Hour
	}
	for ; at.Before(end); at = at.Add(step) {
		starts = append(starts, at)
	}
	return bucket, starts, end
}

// chart draws a view of a period of the reader's organization.
func (p usagePages) chart(r *http.Request, v usageView, period calendar.Period) (chart, error) {
	bucket, starts, end := v.span(period)
	query := postgres.UsageQuery{Bucket: bucket, By: map[postgres.Dimension]bool{v.by: true}, From: starts[0], To: end, Limit: chartUses}
	organization := identity.FromContext(r.Context()).Organization
	uses, err := p.services.Usage.List(r.Context(), organization, query)
	if err != nil {
		return chart{}, err
	}
	drawn := newChart(uses, v.by, starts, func(id string) string { return p.nameOf(organization, v.by, id) })
	drawn.Cut = len(uses) == chartUses
	for i := range uses {
		switch uses[i].Outcome {
		case "dropped_by_client":
			drawn.Dropped += uses[i].Entries
		case "dropped_by_rule":
			drawn.Ruled += uses[i].Entries
		}
	}
	for i := range drawn.Columns {
		if bucket == postgres.ByDay {
			drawn.Columns[i].Hours = hoursAddress(v.by, drawn.Columns[i].At)
		}
	}
	return drawn, nil
}

// nameOf returns a name in a dimension of an organization.
func (s site) nameOf(organization string, by postgres.Dimension, id string) string {
	switch {
	case id == "":
		return "not known"
	case by == postgres.ByProject:
		if name := s.directory.Name(id); name != "" {
			return name
		}
	case by == postgres.ByKey:
		if key, known := s.directory.Key(organization, id); known {
			return key.Name
		}
	case by == postgres.ByOutcome:
		return outcomeText(id)
	}
	return id
}

func outcomeText(outcome string) string {
	switch outcome {
	case "accepted":
		return "accepted"
	case "rejected":
		return "not valid"
	case "rate_limited":
		return "too many per minute"
	case "quota_exceeded":
		return "over the quota"
	case "overloaded":
		return "overloaded: send again"
	case "dropped_by_client":
		return "dropped by the client"
	case "dropped_by_rule":
		return "dropped by your rules"
	}
	return outcome
}

// views returns the links to all dimensions, for the same day.
func (v usageView) views() []view {
	links := make([]view, len(views))
	for i, by := range views {
		href := "/console/usage?by=" + string(by)
		if !v.day.IsZero() {
			href = hoursAddress(by, v.day)
		}
		links[i] = view{Text: "By " + string(by), Href: href, Current: by == v.by}
	}
	return links
}

// units are the units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// sizeText formats a size exactly, as parseSize reads it; empty for 0.
func sizeText(bytes int64) string {
	for _, unit := range units {
		if bytes > 0 && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + " " + unit.name
		}
	}
	return ""
}

// parseSize reads a size such as "1.5 GiB", without a unit in bytes,
// rounded down. ok is false unless it is at least a byte.
func parseSize(text string) (bytes int64, ok bool) {
	number, factor := text, int64(1)
	for _, unit := range units {
		if before, found := strings.CutSuffix(text, unit.name); found {
			number, factor = strings.TrimSpace(before), unit.bytes
			break
		}
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return whole * factor, whole > 0 && whole <= ledger.MaxGrant/factor
	}
	size, err := strconv.ParseFloat(number, 64)
	size *= float64(factor)
	return int64(size), err == nil && size >= 1 && size <= float64(ledger.MaxGrant)
}
