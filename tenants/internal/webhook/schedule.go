package webhook

import "time"

// pauses follow each failed attempt: 71 hours and 36 minutes in all.
var pauses = []time.Duration{
	5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 18 * time.Hour, 22 * time.Hour,
}

// Attempts limits how often a message is sent.
const Attempts = 11

// RetryDelay returns the wait after so many failed attempts; false: no
// more. chance is from 0 to 1: the pause is up to a tenth shorter, so
// that messages that failed together do not return together.
func RetryDelay(failed int, chance float64) (time.Duration, bool) {
	if failed < 1 || failed > len(pauses) {
		return 0, false
	}
	pause := pauses[failed-1]
	return pause - time.Duration(chance*float64(pause)/10), true
}
