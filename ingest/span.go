package ingest

import (
	"cmp"
	"math"
	"time"
)

// A Span is a range of event times whose entries share blocks. Entries
// within an hour of their receipt are in spans of one hour, all others in
// one of a few classes of distance, ever wider: so odd times neither
// widen ordinary blocks nor make many blocks.
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

// MaxSpans is the most spans of one request: each class in both
// directions, and the near hours.
const MaxSpans = 2*len(distances) + 3

// SpanOf is the span of an entry by event time and receipt.
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

// Rounded widens the times of a day's entries to bounds, in
// seconds, that most blocks of that day share.
func Rounded(first, last Instant, day time.Time) (from, to int64) {
	return day.Unix() - classEnd(day.Unix()-first.Seconds), day.Unix() + secondsOfDay + classEnd(last.Seconds-day.Unix()-secondsOfDay)
}

// classEnd is the end of the class of distances with away; one
// more is beyond the last.
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
