package ingest

import (
	"cmp"
	"math"
	"time"
)

// A Span is a stretch of event times whose entries share blocks. Entries within an hour of their receipt lie in spans of one
// hour of the clock, all others in one of a few classes by their distance, whose width grows with it: so odd times make no
// block of common ones wide, and make few blocks, whatever times there are.
type Span struct {
	class int8  // 0: near; further away in the future: 1, 2, …; in the past: -1, -2, …
	hour  int64 // of the near ones, since 1970
}

const (
	secondsOfHour = 3600
	secondsOfDay  = 24 * secondsOfHour
	secondsOfYear = 366 * secondsOfDay
)

// distances are where the classes end, in seconds; the last one has no end.
var distances = [...]int64{secondsOfHour, secondsOfDay, 32 * secondsOfDay, secondsOfYear, 10 * secondsOfYear, 100 * secondsOfYear, 1000 * secondsOfYear}

// MaxSpans is how many spans the entries of one request can lie in: each class of both directions, and the near hours.
const MaxSpans = 2*len(distances) + 3

// SpanOf is where an entry of that event time and receipt lies.
func SpanOf(event Instant, received time.Time) Span {
	away := event.Seconds - received.Unix()
	class := int8(0)
	for class < int8(len(distances)) && max(away, -away) > distances[class] {
		class++
	}
	if class == 0 {
		return Span{hour: floorDiv(event.Seconds, secondsOfHour)}
	}
	return Span{class: class * int8(cmp.Compare(away, 0))} //nolint:gosec // -1 or 1
}

// Rounded widens the times of entries that were received on a day to bounds, in seconds, that are the same for most blocks of that day.
func Rounded(first, last Instant, day time.Time) (from, to int64) {
	return day.Unix() - classEnd(day.Unix()-first.Seconds), day.Unix() + secondsOfDay + classEnd(last.Seconds-day.Unix()-secondsOfDay)
}

// classEnd is the end of the class of distances that holds away; there is one beyond the last, for whatever times there are.
func classEnd(away int64) int64 {
	for _, end := range distances {
		if away <= end {
			return end
		}
	}
	return math.MaxInt64 / 4
}

// floorDiv divides, rounded towards the past.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a - b + 1) / b
	}
	return a / b
}
