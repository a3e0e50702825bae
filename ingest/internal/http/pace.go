package http

import (
	"bytes"
	"time"
)

// How slowly a body may come. It begins with idleTime and never has more: a
// stalled body holds its memory no longer. Useful bytes, after decompression,
// win time: a second for each minPace of a small body, and for each largePace
// beyond. A body has bodyTime in all; then the answer has answerTime.
const (
	idleTime   = 10 * time.Second
	minPace    = 16 << 10
	largePace  = 64 << 10
	bodyTime   = 3 * time.Minute
	answerTime = time.Minute
)

// A pace is the time that one body has.
type pace struct {
	deadline time.Time // of the next useful bytes
	last     time.Time // of the whole body
	useful   int
}

func newPace(now time.Time) pace {
	return pace{deadline: now.Add(idleTime), last: now.Add(bodyTime)}
}

// left is how long the body may wait for more; not positive: it is too slow.
func (p *pace) left(now time.Time) time.Duration { return p.deadline.Sub(now) }

// received adds useful bytes.
func (p *pace) received(now time.Time, useful int) {
	slowest := minPace
	if p.useful += useful; p.useful > smallBody {
		slowest = largePace
	}
	p.deadline = p.deadline.Add(time.Duration(useful) * time.Second / time.Duration(slowest))
	for _, limit := range [...]time.Time{now.Add(idleTime), p.last} {
		if p.deadline.After(limit) {
			p.deadline = limit
		}
	}
}

// pause adds time during which the service made the body wait.
func (p *pace) pause(waited time.Duration) {
	p.deadline, p.last = p.deadline.Add(waited), p.last.Add(waited)
}

// usefulIn returns the bytes without the white space around them.
func usefulIn(came []byte) int { return len(bytes.Trim(came, " \t\r\n")) }
