package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A ThrottleLimit bounds how fast the bodies of one holder come in while others
// send bodies, too. The zero value limits nothing. Bytes are those after
// decompression; a second of them may come at once.
type ThrottleLimit struct {
	PerSecond int64 // bytes of large bodies
	Bodies    int   // large ones under way at once of a holder that is throttled
	Ordinary  int64 // bytes of others, and what else is charged for them
}

// activeFor is how long a holder counts as active after a body.
const activeFor = 5 * time.Second

// maxThrottled is how many holders are kept apart.
const maxThrottled = 4096

// A Throttle slows down the bodies of a holder above its share while
// others send: the processor, the brokers and the consumers are shared.
// A holder that is alone is not limited. It is safe for concurrent use.
type Throttle struct {
	limit    ThrottleLimit
	clock    func() time.Time
	large    *fairshare.Table[string] // of bytes of large bodies
	ordinary *fairshare.Table[string] // of others

	waiting, waited atomic.Int64 // bodies now, and nanoseconds in all

	mu     sync.Mutex
	latest [2]visit // of different holders, the newest first
}

type visit struct {
	holder string
	at     time.Time
}

// NewThrottle makes a throttle.
func NewThrottle(limit ThrottleLimit, clock func() time.Time) *Throttle {
	return &Throttle{limit: limit, clock: clock, large: fairshare.NewTable[string](maxThrottled), ordinary: fairshare.NewTable[string](maxThrottled)}
}

// Note records that a holder sends a body.
func (t *Throttle) Note(holder string) {
	now := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest[0].holder != holder {
		t.latest[1] = t.latest[0]
	}
	t.latest[0] = visit{holder, now}
}

// Full reports whether a holder with so many large bodies under way may
// begin no more.
func (t *Throttle) Full(holder string, underWay int) bool {
	return t.limit.PerSecond > 0 && underWay >= t.limit.Bodies && t.shared(holder) && t.wait(holder) > 0
}

// Take charges coming bytes of a holder's large body and waits for its
// share, or until ctx ends.
func (t *Throttle) Take(ctx context.Context, holder string, bytes int64) (wait time.Duration, err error) {
	if t.limit.PerSecond <= 0 || !t.shared(holder) { // no debt from when it was alone
		return 0, nil
	}
	t.large.Spend(t.clock(), holder, bytes, aSecond(t.limit.PerSecond))
	wait = t.wait(holder)
	return wait, t.sleep(ctx, wait)
}

// longestWait is the longest wait of an ordinary body, whose client
// soon gives up.
const longestWait = 5 * time.Second

// ErrOverShare means that a holder's bodies come faster than its share.
var ErrOverShare = errors.New("the holder's bodies come faster than its share")

// Due returns how long a holder's next ordinary body waits for those
// before it, or ErrOverShare. Its own size is not known yet.
func (t *Throttle) Due(holder string) (wait time.Duration, err error) {
	if t.limit.Ordinary <= 0 || !t.shared(holder) {
		return 0, nil
	}
	if wait = t.ordinary.Wait(t.clock(), holder, aSecond(t.limit.Ordinary)); wait > longestWait {
		return wait, ErrOverShare
	}
	return wait, nil
}

// Await waits as long as Due returns, or until ctx ends.
func (t *Throttle) Await(ctx context.Context, holder string) (wait time.Duration, err error) {
	if wait, err = t.Due(holder); err != nil {
		return wait, err
	}
	return wait, t.sleep(ctx, wait)
}

// sleep waits, counted.
func (t *Throttle) sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	begun := t.clock()
	defer func() { t.waited.Add(int64(t.clock().Sub(begun))) }()
	lifecycle.Pause(ctx, wait)
	return ctx.Err()
}

// Waiting returns how many bodies wait for their holder's share.
func (t *Throttle) Waiting() int64 { return t.waiting.Load() }

// Waited returns how long bodies have waited in all.
func (t *Throttle) Waited() time.Duration { return time.Duration(t.waited.Load()) }

// Received charges an ordinary body, for which the next one waits.
func (t *Throttle) Received(holder string, bytes int64) {
	if t.limit.Ordinary > 0 && t.shared(holder) {
		t.ordinary.Spend(t.clock(), holder, bytes, aSecond(t.limit.Ordinary))
	}
}

// aSecond is a rate of which a second's amount may come at once.
func aSecond(amount int64) fairshare.Rate { return fairshare.Rate{Burst: amount, PerSecond: amount} }

func (t *Throttle) wait(holder string) time.Duration {
	return t.large.Wait(t.clock(), holder, aSecond(t.limit.PerSecond))
}

// shared reports whether others than the holder send bodies.
func (t *Throttle) shared(holder string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	other := t.latest[0]
	if other.holder == holder {
		other = t.latest[1]
	}
	return other.holder != "" && t.clock().Sub(other.at) < activeFor
}
