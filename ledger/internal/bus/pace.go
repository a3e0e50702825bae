package bus

import "time"

// Bounds of the pause between rounds of account states.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Second // so that a change applies everywhere within about a second
	pausePerState = time.Second / 5000
)

// pauseAfter returns the pause after a round of so many states. Each
// commit changes accounts, and every follower reads every state. The
// pause bounds their number by the accounts, not the commits.
func pauseAfter(states int) time.Duration {
	return min(max(shortestPause, time.Duration(states)*pausePerState), longestPause)
}
