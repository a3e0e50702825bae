package clock

import (
	"context"
	"math/rand/v2"
	"time"
)

// Now is the time that sockets' deadlines and retries are measured by, and that records are stamped with. It is not a parameter: the
// kernel and the timers use no other, and a broker refuses records that are more than an hour ahead of its own.
func Now() time.Time { return time.Now() } //nolint:forbidigo // see above

// Pause waits, or ends early with the context.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// LongestAbsence is the longest pause before a publisher or a follower tries a broker again: revocations are to be in force within a
// second of its return, and the relay that has them published looks every 200 ms only.
const LongestAbsence = 400 * time.Millisecond

// Backoff is how long to wait after the given number of failures in a row: doubling from first to limit, less up to a half at
// random so that many do not come back together.
func Backoff(failures int, first, limit time.Duration) time.Duration {
	d := limit
	if failures < 20 {
		d = min(limit, first<<max(0, failures-1))
	}
	return d - rand.N(d/2+1)
}
