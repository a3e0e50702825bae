package ui

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The size of a histogram, in the units of its picture.
const (
	histogramWidth  = 1200
	histogramHeight = 60
)

// A Histogram shows how many there are over time, by level or by what else there is a series of. Each bar leads to its time. The
// template "histogram" shows it, and the script "explore" lets one choose a time by
// dragging.
type Histogram struct {
	Label string // of the whole, for those who don't look
	Noun  string // what is counted
	Max   int64  // of a bar
	First time.Time
	Last  time.Time // the end of the last bar
	Every int64     // the width of a bar, in seconds
	Bars  []Bar
	Marks []string // where something else began: places from the left
	Box   string   // the picture's view box
	Of    string   // what the series are; empty: levels
	Parts []Series // from the bottom up; nil: levels
	Note  string   // what readers have to know of it
}

// A Series is one part of all bars.
type Series struct {
	Class string // of its color
	Name  string
}

// MostSeries is how many there may be beside each other; one more is the rest.
const MostSeries = 6

// SeriesClass is the class of a series by its number.
func SeriesClass(number int) string { return "series-" + strconv.Itoa(min(number, MostSeries)) }

// A Bar is a bucket of time.
type Bar struct {
	At    time.Time
	Href  string
	Text  string // what it stands for
	Sum   int64
	Parts []BarPart // from the bottom up
	Box   BarPart   // of the whole height, to point at
}

// A BarPart is a rectangle: the share of a series in a bar.
type BarPart struct {
	Series
	Count               int64
	X, Y, Width, Height string
}

// levels are those of a bar, from the bottom up.
var levels = []Series{{"fatal", "fatal"}, {"error", "error"}, {"warn", "warn"}, {"info", "info"}, {"debug", "debug"}}

// NewHistogram draws the counts of buckets, each by the class of a series, the first of
// which begins at first. Without parts, these are the levels. Bars lead to r with their own time.
func NewHistogram(r *http.Request, noun string, first time.Time, every time.Duration, parts []Series, buckets []map[string]int64) *Histogram {
	h := &Histogram{Noun: strings.ToUpper(noun[:1]) + noun[1:], Every: int64(every / time.Second), Parts: parts,
		Box: fmt.Sprintf("0 0 %d %d", histogramWidth, histogramHeight),
	}
	h.First, h.Last = h.after(first, 0), h.after(first, len(buckets))
	var all int64
	for _, counts := range buckets {
		sum := sumOf(counts)
		h.Max, all = max(h.Max, sum), all+sum
	}
	for i, counts := range buckets {
		h.Bars = append(h.Bars, h.bar(r, noun, [2]time.Time{h.after(first, i), h.after(first, i+1)}, i, len(buckets), counts))
	}
	h.Label = fmt.Sprintf("%s %s from %s to %s, at most %s in %s", Count(all), noun, Instant(h.First), Instant(h.Last), Count(h.Max), span(every))
	return h
}

// Mark marks a time.
func (h *Histogram) Mark(at time.Time) {
	h.Marks = append(h.Marks, decimal(float64(at.Sub(h.First))/float64(h.Last.Sub(h.First))*histogramWidth))
}

func sumOf(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// The times that an address can name.
var (
	earliest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// after is the time some bars later, within what can be named.
func (h *Histogram) after(first time.Time, bars int) time.Time {
	at := time.Unix(first.Unix()+int64(bars)*h.Every, 0).UTC()
	switch {
	case at.Before(earliest):
		return earliest
	case at.After(latest):
		return latest
	}
	return at
}

func (h *Histogram) bar(r *http.Request, noun string, times [2]time.Time, i, many int, counts map[string]int64) Bar {
	at, end := times[0], times[1]
	step := float64(histogramWidth) / float64(many)
	x, width := decimal(float64(i)*step), decimal(step*0.9)
	bar := Bar{
		At: at, Sum: sumOf(counts), Box: BarPart{X: x, Y: "0", Width: decimal(step), Height: decimal(histogramHeight)},
		Href: With(r, "from", at.UTC().Format(time.RFC3339), "to", end.UTC().Format(time.RFC3339), "last", ""),
	}
	until := clock(end)
	if day(at) != day(end) {
		until = Instant(end)
	}
	bar.Text = fmt.Sprintf("%s to %s: %s %s", Instant(at), until, Count(bar.Sum), noun)
	y := float64(histogramHeight)
	parts := h.Parts
	if parts == nil {
		parts = levels
	}
	for _, series := range parts {
		if n := counts[series.Class]; n > 0 {
			height := max(0.5, float64(n)/float64(h.Max)*histogramHeight) // a single error still shows
			y -= height
			bar.Parts = append(bar.Parts, BarPart{series, n, x, decimal(max(0, y)), width, decimal(height)})
			bar.Text += fmt.Sprintf(", %s %s", Count(n), series.Name)
		}
	}
	return bar
}

func decimal(of float64) string { return strconv.FormatFloat(of, 'f', 1, 64) }

// span is a duration of whole seconds for people.
func span(of time.Duration) string {
	for _, unit := range []struct {
		of        time.Duration
		one, many string
	}{{24 * time.Hour, "a day", "days"}, {time.Hour, "an hour", "hours"}, {time.Minute, "a minute", "minutes"}, {time.Second, "a second", "seconds"}} {
		if n := of / unit.of; n > 0 && of%unit.of == 0 {
			if n == 1 {
				return unit.one
			}
			return fmt.Sprintf("%d %s", n, unit.many)
		}
	}
	return of.String()
}
