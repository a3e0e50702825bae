package loadgen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"
)

// An entry is a log entry in the clients' form.
type entry = map[string]any

// levels have shares in percent; the rest is info.
var levels = []struct {
	name  string
	share int
}{{"fatal", 1}, {"error", 6}, {"warn", 10}, {"debug", 15}}

// entry returns one entry of s with the given time.
func (s service) entry(d dice, at time.Time) entry {
	level, roll := "info", d.IntN(100)
	for _, l := range levels {
		if roll -= l.share; roll < 0 {
			level = l.name
			break
		}
	}
	e := entry{
		"timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"), "level": level, "environment": "prod",
		"metadata": entry{
			"service": s.Name, "host": fmt.Sprintf("%s-%d.eu-1.example", s.Name, 1+d.IntN(s.Hosts)), "trace_id": d.expand("{hex}{hex}"),
			"release": "2026.11." + d.expand("{18~3}"), "thread": d.IntN(32),
		},
	}
	switch level {
	case "fatal", "error":
		f := pick(d, s.Failures)
		frames := make([]string, len(f.Frames))
		for i, frame := range f.Frames {
			frames[i] = d.expand(frame)
		}
		e["message"] = d.expand(f.Log)
		e["error"] = entry{"type": f.Kind, "message": d.expand(f.Message), "context": entry{"attempt": 1 + d.IntN(3)}, "stack_trace": frames}
	case "warn":
		e["message"] = d.expand(pick(d, s.Worries))
	default:
		e["message"] = d.expand(pick(d, s.Routine))
	}
	return e
}

// Sizes of a batch, in entries.
const (
	smallestBatch = 5
	largestBatch  = 60
)

// batch returns the body of one post of s, the events of the last second
// before now, and how many of them are failures.
func (s service) batch(d dice, now time.Time) (body []byte, failures int, err error) {
	logs := make([]entry, smallestBatch+d.IntN(largestBatch-smallestBatch+1))
	for i := range logs {
		logs[i] = s.entry(d, now.Add(-time.Second+time.Second*time.Duration(i)/time.Duration(len(logs))))
		if logs[i]["error"] != nil {
			failures++
		}
	}
	body, err = json.Marshal(map[string]any{"logs": logs})
	return body, failures, err
}

// A dice generates all that varies. The same seed makes the same
// traffic, except for the time.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, seed))}
}

// placeholder is {id}, {user}, {hex}, {ip}, {ms}, or {40~9} for a number
// from 40 to 49.
var placeholder = regexp.MustCompile(`\{(id|user|hex|ip|ms|\d+~\d+)\}`)

// expand fills the placeholders of a template.
func (d dice) expand(template string) string {
	return placeholder.ReplaceAllStringFunc(template, func(found string) string {
		switch found {
		case "{id}":
			return strconv.Itoa(10_000 + d.IntN(90_000))
		case "{user}":
			return "usr_" + strconv.FormatUint(d.Uint64N(1<<30), 36)
		case "{hex}":
			return fmt.Sprintf("%08x", d.Uint32())
		case "{ip}":
			return fmt.Sprintf("10.%d.%d.%d", d.IntN(4), d.IntN(256), 1+d.IntN(254))
		case "{ms}":
			return strconv.Itoa(1 + int(d.ExpFloat64()*40))
		}
		var low, width int
		_, _ = fmt.Sscanf(found, "{%d~%d}", &low, &width)
		return strconv.Itoa(low + d.IntN(width+1))
	})
}

func pick[T any](d dice, items []T) T {
	return items[d.IntN(len(items))]
}
