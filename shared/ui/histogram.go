package ui

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The size of a histogram, in the units of its picture.
const (
	histogramWidth  = 1200
	histogramHeight = 60
)

// A Histogram shows how many there are over time, by level. Each bar leads to its time. The
// template "histogram" shows it, and the script "explore" lets one choose a time by
// dragging.
type Histogram struct {
	Label string // of the whole, for those who don't look
	Max   int64  // of a bar
	First time.Time
	Last  time.Time // the end of the last bar
	Every int64     // the width of a bar, in seconds
	Bars  []Bar
	Box   string // the picture's view box
}

// A Bar is a bucket of time.
type Bar struct {
	At    time.Time
	Href  string
	Text  string // what it stands for
	Sum   int64
	Parts []BarPart // from the bottom up
	Box   BarPart   // of the whole height, to point at
}

// A BarPart is a rectangle: a level's share of a bar.
type BarPart struct {
	Level               string
	Count               int64
	X, Y, Width, Height string
}

// stacked are the levels of a bar, from the bottom up.
var stacked = []string{"fatal", "error", "warn", "info", "debug"}

// NewHistogram draws the counts of buckets, each by level, the first of
// which begins at first. Bars lead to r with their own time.
func NewHistogram(r *http.Request, noun string, first time.Time, every time.Duration, buckets []map[string]int64) *Histogram {
	h := &Histogram{Every: int64(every / time.Second),
		Box: fmt.Sprintf("0 0 %d %d", histogramWidth, histogramHeight),
	}
	h.First, h.Last = h.after(first, 0), h.after(first, len(buckets))
	var all int64
	for _, levels := range buckets {
		sum := sumOf(levels)
		h.Max, all = max(h.Max, sum), all+sum
	}
	for i, levels := range buckets {
		h.Bars = append(h.Bars, h.bar(r, noun, [2]time.Time{h.after(first, i), h.after(first, i+1)}, i, len(buckets), levels))
	}
	h.Label = fmt.Sprintf("%s %s from %s to %s, at most %s in %s", Count(all), noun, Instant(h.First), Instant(h.Last), Count(h.Max), span(every))
	return h
}

func sumOf(levels map[string]int64) (sum int64) {
	for _, n := range levels {
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

func (h *Histogram) bar(r *http.Request, noun string, times [2]time.Time, i, many int, levels map[string]int64) Bar {
	at, end := times[0], times[1]
	step := float64(histogramWidth) / float64(many)
	x, width := decimal(float64(i)*step), decimal(step*0.9)
	bar := Bar{
		At: at, Sum: sumOf(levels), Box: BarPart{X: x, Y: "0", Width: decimal(step), Height: decimal(histogramHeight)},
		Href: With(r, "from", at.UTC().Format(time.RFC3339), "to", end.UTC().Format(time.RFC3339), "last", ""),
	}
	until := clock(end)
	if day(at) != day(end) {
		until = Instant(end)
	}
	bar.Text = fmt.Sprintf("%s to %s: %s %s", Instant(at), until, Count(bar.Sum), noun)
	y := float64(histogramHeight)
	for _, level := range stacked {
		if n := levels[level]; n > 0 {
			height := max(0.5, float64(n)/float64(h.Max)*histogramHeight) // a single error still shows
			y -= height
			bar.Parts = append(bar.Parts, BarPart{level, n, x, decimal(max(0, y)), width, decimal(height)})
			bar.Text += fmt.Sprintf(", %s %s", Count(n), level)
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
