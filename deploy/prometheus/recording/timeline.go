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
	samples []float64 // NaN: none
	last    float64   // last scraped value of a counter
}

// missing makes the series absent until then.
func (s *timeline) missing(minutes int) {
	for len(s.samples) < minutes {
		s.samples = append(s.samples, math.NaN())
	}
}

// play extends a scraped series by so many minutes. Counters keep their
// rate and timestamps their distance from now; so does a value that
// rises above all before. All else repeats its changes.
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

// continued returns where a counter with a current value continues: its
// last sample plus what it has counted since. A restarted one begins at 0.
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

// exceeded reports whether values rise above all before them, never
// fall, and rise more often than not.
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

// String returns the timeline in promtool's format.
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
