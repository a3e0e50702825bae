package webhook

import "time"

// pauses are those after each failed attempt: 71 hours and 36 minutes in all.
var pauses = []time.Duration{
	5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 18 * time.Hour, 22 * time.Hour,
}

// Attempts is how often a message is sent at most.
const Attempts = 11

// RetryDelay is how long to wait after so many failed attempts; false: no more.
// chance is from 0 to 1: the pause is up to a tenth shorter, so that what
// failed together does not come again together.
func RetryDelay(failed int, chance float64) (time.Duration, bool) {
	if failed < 1 || failed > len(pauses) {
		return 0, false
	}
	pause := pauses[failed-1]
	return pause - time.Duration(chance*float64(pause)/10), true
}
