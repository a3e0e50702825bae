package admission

import (
	"sync"
	"time"

	"github.com/weirlog/weir/shared/rate"
)

// A ThrottleLimit bounds how fast the bodies of one holder come in while others send bodies, too. The zero value limits nothing. Bytes are those after
// decompression; a second of them may come at once.
type ThrottleLimit struct {
	PerSecond int64 // bytes of large bodies
	Bodies    int   // large ones under way at once of a holder that is throttled
	Ordinary  int64 // bytes of others, and what else is charged for them
}

// company is for how long somebody who has sent a body counts as being there.
const company = 5 * time.Second

// maxThrottled is how many holders are kept apart.
const maxThrottled = 4096

// A Throttle slows down the bodies of a holder that brings more than its share while others send bodies: the processor, the
// brokers and the consumers are everybody's. Whoever is alone gets all that there is. It is safe for concurrent use.
type Throttle struct {
	limit    ThrottleLimit
	clock    func() time.Time
	buckets  *rate.Table[string] // of bytes of large bodies
	ordinary *rate.Table[string] // of others

	mu     sync.Mutex
	latest [2]visit // of different holders, the newest first
}

type visit struct {
	holder string
	at     time.Time
}

// NewThrottle makes a throttle.
func NewThrottle(limit ThrottleLimit, clock func() time.Time) *Throttle {
	return &Throttle{limit: limit, clock: clock, buckets: rate.NewTable[string](maxThrottled), ordinary: rate.NewTable[string](maxThrottled)}
}

// Note notes that a holder sends a body.
func (t *Throttle) Note(holder string) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest[0].holder != holder {
		t.latest[1] = t.latest[0]
	}
	t.latest[0] = visit{holder, now}
}

// Full reports whether a holder, with so many large bodies under way, may begin no other one.
func (t *Throttle) Full(holder string, underWay int) bool {
	return t.limit.PerSecond > 0 && underWay >= t.limit.Bodies && t.shared(holder) && t.wait(holder) > 0
}

// Take counts bytes of a holder's large body that are about to come, and waits until it is their turn.
func (t *Throttle) Take(holder string, bytes int64) (waited time.Duration) {
	if t.limit.PerSecond <= 0 || !t.shared(holder) { // a debt of before others came would be theirs
		return 0
	}
	t.buckets.Spend(t.clock().UnixNano(), holder, bytes, t.limit.PerSecond)
	if waited = t.wait(holder); waited > 0 {
		<-time.After(waited)
	}
	return waited
}

// longestWait is how long an ordinary body waits at most: its client, who can't see why, soon gives up.
const longestWait = 5 * time.Second

// Await waits until a holder has paid for the ordinary bodies that it has sent beyond its share: of one that only begins, the size is not known. Where that
// takes too long it returns false at once, and how long.
func (t *Throttle) Await(holder string) (wait time.Duration, waited bool) {
	if t.limit.Ordinary <= 0 || !t.shared(holder) {
		return 0, true
	}
	wait = t.ordinary.Wait(t.clock().UnixNano(), holder, t.limit.Ordinary, t.limit.Ordinary)
	if wait > longestWait {
		return wait, false
	}
	if wait > 0 {
		<-time.After(wait)
	}
	return wait, true
}

// Came counts an ordinary body of a holder, which the next one waits for.
func (t *Throttle) Came(holder string, bytes int64) {
	if t.limit.Ordinary > 0 && t.shared(holder) {
		t.ordinary.Spend(t.clock().UnixNano(), holder, bytes, t.limit.Ordinary)
	}
}

func (t *Throttle) wait(holder string) time.Duration {
	return t.buckets.Wait(t.clock().UnixNano(), holder, t.limit.PerSecond, t.limit.PerSecond)
}

// shared reports whether others than the holder send bodies.
func (t *Throttle) shared(holder string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	other := t.latest[0]
	if other.holder == holder {
		other = t.latest[1]
	}
	return other.holder != "" && t.clock().Sub(other.at) < company
}
