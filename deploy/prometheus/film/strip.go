package film

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A strip is one series of a film, with a picture for each minute.
type strip struct {
	pictures []float64 // NaN where there is none
	last     float64   // value of a counter that was looked at
}

// missing has the series be absent until then.
func (s *strip) missing(minutes int) {
	for len(s.pictures) < minutes {
		s.pictures = append(s.pictures, math.NaN())
	}
}

// play goes on for so many minutes with a series that was looked at.
// Counters keep their pace and times their distance from now; so does what
// rises higher than it was before. All else repeats its changes.
func (s *strip) play(name string, values []float64, minutes int, until time.Time) {
	first, last := values[0], values[len(values)-1]
	pace := (last - first) / float64(max(1, len(values)-1)) * float64(time.Minute/pause)
	switch {
	case isCounter(name):
		s.line(s.continued(first), max(0, pace), minutes)
		s.last = last
	case strings.HasSuffix(name, "_timestamp_seconds") && last != 0:
		s.line(60*float64(len(s.pictures))+last-float64(until.Unix()), 60, minutes)
	case s.exceeded(values):
		s.line(first, pace, minutes)
	default:
		for i := range minutes {
			s.pictures = append(s.pictures, values[i%len(values)])
		}
	}
}

func (s *strip) line(from, pace float64, minutes int) {
	for i := range minutes {
		s.pictures = append(s.pictures, from+pace*float64(i))
	}
}

// continued is where a counter goes on that shows a value now: as far from its
// last picture as it has counted since. One that begins anew does so at 0.
func (s *strip) continued(now float64) float64 {
	for _, picture := range slices.Backward(s.pictures) {
		if math.IsNaN(picture) {
			continue
		}
		if now < s.last {
			return now
		}
		return picture + now - s.last
	}
	return now
}

func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_bucket", "_count", "_sum"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// exceeded reports whether values go higher than any before them, never fall,
// and rise more often than not.
func (s *strip) exceeded(values []float64) bool {
	if len(s.pictures) == 0 {
		return false
	}
	for _, picture := range s.pictures {
		if picture >= values[len(values)-1] {
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

// String is the strip as promtool reads it.
func (s *strip) String() string {
	words := make([]string, len(s.pictures))
	for i, picture := range s.pictures {
		words[i] = "_"
		if !math.IsNaN(picture) {
			words[i] = strings.TrimPrefix(strconv.FormatFloat(picture, 'f', -1, 64), "+") // of an infinity
		}
	}
	return strings.Join(words, " ")
}
