package recording

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A timeline is one series of a recording, with a sample for each minute.
type timeline struct {
	samples []float64 // NaN where there is none
	last    float64   // value of a counter that was looked at
}

// missing has the series be absent until then.
func (s *timeline) missing(minutes int) {
	for len(s.samples) < minutes {
		s.samples = append(s.samples, math.NaN())
	}
}

// play goes on for so many minutes with a series that was looked at.
// Counters keep their pace and times their distance from now; so does what
// rises higher than it was before. All else repeats its changes.
func (s *timeline) play(name string, values []float64, minutes int, until time.Time) {
	first, last := values[0], values[len(values)-1]
	pace := (last - first) / float64(max(1, len(values)-1)) * float64(time.Minute/pause)
	switch {
	case isCounter(name):
		s.line(s.continued(first), max(0, pace), minutes)
		s.last = last
	case strings.HasSuffix(name, "_timestamp_seconds") && last != 0:
		s.line(60*float64(len(s.samples))+last-float64(until.Unix()), 60, minutes)
	case s.exceeded(values):
		s.line(first, pace, minutes)
	default:
		for i := range minutes {
			s.samples = append(s.samples, values[i%len(values)])
		}
	}
}

func (s *timeline) line(from, pace float64, minutes int) {
	for i := range minutes {
		s.samples = append(s.samples, from+pace*float64(i))
	}
}

// continued is where a counter goes on that shows a value now: as far from its
// last sample as it has counted since. One that begins anew does so at 0.
func (s *timeline) continued(now float64) float64 {
	for _, sample := range slices.Backward(s.samples) {
		if math.IsNaN(sample) {
			continue
		}
		if now < s.last {
			return now
		}
		return sample + now - s.last
	}
	return now
}

func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_bucket", "_count", "_sum"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// exceeded reports whether values go higher than any before them, never fall,
// and rise more often than not.
func (s *timeline) exceeded(values []float64) bool {
	if len(s.samples) == 0 {
		return false
	}
	for _, sample := range s.samples {
		if sample >= values[len(values)-1] {
			return false
		}
	}
	rose := 0
	for i, value := range values[1:] {
		if value > values[i] {
			rose++
		}
	}
	return slices.IsSorted(values) && 2*rose >= len(values)
}

// String is the timeline as promtool reads it.
func (s *timeline) String() string {
	words := make([]string, len(s.samples))
	for i, sample := range s.samples {
		words[i] = "_"
		if !math.IsNaN(sample) {
			words[i] = strings.TrimPrefix(strconv.FormatFloat(sample, 'f', -1, 64), "+") // of an infinity
		}
	}
	return strings.Join(words, " ")
}
