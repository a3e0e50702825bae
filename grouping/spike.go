package grouping

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Spike is an hour with far more errors of a group than were expected.
type Spike struct {
	Hour     time.Time `json:"hour"`
	Count    int64     `json:"count"` // of its errors, when they were too many
	Expected float64   `json:"expected"`
}

// How an hour is judged. The numbers were chosen on generated series; see the test.
const (
	SpikeHours  = 7 * 24           // before the hour that count
	MinSpike    = 20               // errors that an hour needs to spike
	SpikeFactor = 3                // how many times as many as in busy hours there must be
	busyRank    = 9                // the rank of a busy hour: a daily job has seven of a week, and must hide no spike at other times
	spikeApart  = 24 * time.Hour   // what comes within a day is the same spike
	maxSpikes   = MaxDecisions / 2 // decisions beyond which none is added: the others are for people
)

// FindSpike reports whether an hour spikes by what it has had so far and the SpikeHours before
// it, the newest last. It does with MinSpike errors or more, if these are over SpikeFactor times as
// many as in the ninth busiest of those hours, and as in each of the last seven
// days at this time, or an hour beside it. No errors before are as good a base as any.
func FindSpike(hour time.Time, count int64, before []int64) (s Spike, spikes bool) {
	if count < MinSpike {
		return s, false
	}
	busy := slices.Clone(before)
	slices.Sort(busy)
	bound, usual := busy[len(busy)-busyRank], int64(0)
	for day := len(before) - 24; day >= 0; day -= 24 {
		for _, n := range before[max(0, day-1):min(len(before), day+2)] {
			bound = max(bound, n)
		}
		usual += before[day]
	}
	if count <= SpikeFactor*bound {
		return s, false
	}
	var lastDay int64
	for _, n := range before[len(before)-24:] {
		lastDay += n
	}
	expected := max(float64(lastDay)/24, float64(usual)/float64(len(before)/24))
	return Spike{Hour: hour, Count: count, Expected: math.Round(10*expected) / 10}, true
}

// NewSpike reports whether an hour can't belong to the last spike of its group.
func NewSpike(hour, last time.Time) bool { return !hour.Before(last.Add(spikeApart)) }

// Spiked decides that a group spikes, unless it is ignored or merged into
// another, or this belongs to its last spike.
func (s State) Spiked(found Spike, version int64, at time.Time) (d Decision, follows bool) {
	if s.Status == Ignored || s.Into != "" || version >= maxSpikes || !NewSpike(found.Hour, s.Spike.Hour) {
		return Decision{}, false
	}
	return Decision{Kind: WasSpiking, At: at, Spike: found, Reason: found.words()}, true
}

func (s Spike) words() string {
	times := strings.TrimSuffix(fmt.Sprintf("%.1f", s.Expected), ".0")
	if s.Expected == 0 {
		times = "none"
	}
	hour := s.Hour.UTC().Format("2006-01-02 15:04")
	return fmt.Sprintf("It happened %s times in the hour from %s UTC, and %s were expected.", thousands(int(s.Count)), hour, times)
}
