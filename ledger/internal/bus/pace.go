package bus

import "time"

// Bounds of the pause between two rounds of account states.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Second // for a change is in force everywhere within about a second
	pauseOfState  = time.Second / 5000
)

// pauseBehind is the pause behind a round of so many states. Each
// commit changes accounts, and whoever follows them reads and keeps
// every state: without a pause their number would be that of the
// commits, and not that of the accounts.
func pauseBehind(states int) time.Duration {
	return min(max(shortestPause, time.Duration(states)*pauseOfState), longestPause)
}
