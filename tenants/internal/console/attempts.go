package console

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Limits of attempts to prove who one is: so many at once, then one more each time. They hold per process. Those of members
// who have signed in are counted apart: a stranger who tries to sign in as somebody, or from the same network, must not keep
// them from confirming that it is them, nor a thief of their session from signing in.
const (
	perNetwork    = 20
	networkRefill = 15 * time.Second
	perEmail      = 10
	emailRefill   = 30 * time.Second
	perMember     = 10
	memberRefill  = 30 * time.Second
)

// maxTracked is how many names are watched before those are dropped that would be allowed everything again.
const maxTracked = 100_000

// attempts limits how often something is tried under a name: a token bucket per name, kept as the one instant at which
// it is full again (the generic cell rate algorithm, ITU-T I.371). Names are kept as hashes, so that a long one costs
// no more than a short one. Safe for concurrent use.
type attempts struct {
	clock  func() time.Time
	burst  int
	refill time.Duration

	mu     sync.Mutex
	fullAt map[[sha256.Size]byte]time.Time
	swept  time.Time // when those whose bucket is full were last forgotten
}

func newAttempts(clock func() time.Time, burst int, refill time.Duration) *attempts {
	return &attempts{clock: clock, burst: burst, refill: refill, fullAt: map[[sha256.Size]byte]time.Time{}}
}

// take counts one attempt under name, or says how long to wait for the next one: 0 means that it was counted.
func (a *attempts) take(name string) (wait time.Duration) {
	key, now := sha256.Sum256([]byte(name)), a.clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	fullAt := a.fullAt[key]
	if fullAt.Before(now) {
		fullAt = now
	}
	fullAt = fullAt.Add(a.refill)
	if over := fullAt.Sub(now) - time.Duration(a.burst)*a.refill; over > 0 {
		return over
	}
	a.makeRoom(now)
	a.fullAt[key] = fullAt
	return 0
}

// makeRoom forgets the names whose bucket is full; where there are too many others, any: the limit is there to slow
// attackers down, and must not let them fill the memory instead. It looks at all of them at most once a second: whoever
// comes with ever new names must not make each attempt dear.
func (a *attempts) makeRoom(now time.Time) {
	if len(a.fullAt) < maxTracked {
		return
	}
	if now.Sub(a.swept) >= time.Second {
		a.swept = now
		a.forgetFull(now)
	}
	for key := range a.fullAt {
		if len(a.fullAt) < maxTracked {
			return
		}
		delete(a.fullAt, key)
	}
}

func (a *attempts) forgetFull(now time.Time) {
	for key, fullAt := range a.fullAt {
		if !fullAt.After(now) {
			delete(a.fullAt, key)
		}
	}
}
