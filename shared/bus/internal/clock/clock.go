package clock

import (
	"math/rand/v2"
	"time"
)

// Now returns the time for deadlines, retries and records' timestamps.
// It is no parameter: kernel and timers use no other clock, and a
// broker refuses records more than an hour ahead of its own.
func Now() time.Time { return time.Now() } //nolint:forbidigo // see above

// LongestAbsence is the longest pause before a broker is tried again:
// revocations take effect within a second of its return, and their
// relay looks every 200 ms.
const LongestAbsence = 400 * time.Millisecond

// Backoff returns the wait after so many failures in a row: doubled from first
// to limit, less up to half at random, so that many do not retry together.
func Backoff(failures int, first, limit time.Duration) time.Duration {
	d := limit
	if failures < 20 {
		d = min(limit, first<<max(0, failures-1))
	}
	return d - rand.N(d/2+1)
}
