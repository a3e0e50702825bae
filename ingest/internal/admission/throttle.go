package admission

import (
	"container/list"
	"context"
	"errors"
	"runtime"
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

// Worked charges a holder for time of a processor, as bytes that would take as
// long to come: all its later bodies wait for it.
func (t *Throttle) Worked(holder string, took time.Duration) {
	share := took.Seconds() / float64(runtime.GOMAXPROCS(0))
	if t.limit.Ordinary <= 0 || !t.shared(holder) {
		return
	}
	t.ordinary.Spend(t.clock(), holder, int64(share*float64(t.limit.Ordinary)), aSecond(t.limit.Ordinary))
	if t.limit.PerSecond > 0 {
		t.large.Spend(t.clock(), holder, int64(share*float64(t.limit.PerSecond)), aSecond(t.limit.PerSecond))
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

// A Digest is a SHA-256.
type Digest [32]byte

// An Answer is the result of a request with an idempotency key.
type Answer struct {
	Batch string // id
	Bytes int64  // charged
}

// Replays holds the idempotency keys of the last day that came to this
// process; across processes the inboxes of the log's consumers decide.
// It is bounded: the organization with the most keys loses its oldest.
type Replays struct {
	window time.Duration
	max    int

	mu      sync.Mutex
	byKey   map[Digest]*Attempt // bounded by max
	oldest  list.List           // of the attempts of byKey, in the order in which they began
	senders map[string]*sender  // bounded by the attempts
	most    *fairshare.Ranking[*sender]
}

// A sender is an organization with its attempts, in the order in which they began.
type sender struct {
	organization string
	attempts     list.List
}

// An Attempt is a request with an idempotency key.
type Attempt struct {
	replays *Replays
	key     Digest
	body    Digest
	began   time.Time
	done    chan struct{} // closed when it has ended
	answer  *Answer       // nil until it has succeeded

	sender        *sender
	aged, holding *list.Element // in oldest, and of its sender
}

// NewReplays keeps at most limit keys, each for window.
func NewReplays(window time.Duration, limit int) *Replays {
	return &Replays{window: window, max: max(limit, 1), byKey: map[Digest]*Attempt{}, senders: map[string]*sender{}, most: fairshare.NewRanking[*sender]()}
}

// Begin begins an attempt of an organization under key. If first is
// false, the attempt is an earlier one of the key: compare Body, and
// wait for Done.
func (r *Replays) Begin(organization string, key, body Digest, now time.Time) (attempt *Attempt, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	if earlier := r.byKey[key]; earlier != nil {
		return earlier, false
	}
	if len(r.byKey) >= r.max {
		r.drop(r.most.First().attempts.Front().Value.(*Attempt))
	}
	attempt = &Attempt{replays: r, key: key, body: body, began: now, done: make(chan struct{})}
	r.byKey[key], attempt.aged = attempt, r.oldest.PushBack(attempt)
	r.assign(organization, attempt)
	return attempt, true
}

func (r *Replays) assign(organization string, attempt *Attempt) {
	of := r.senders[organization]
	if of == nil {
		of = &sender{organization: organization}
		r.senders[organization] = of
	}
	attempt.sender, attempt.holding = of, of.attempts.PushBack(attempt)
	r.most.Set(of, of.attempts.Len())
}

// Len returns the number of keys kept.
func (r *Replays) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey)
}

// Body is the digest of the attempt's body.
func (a *Attempt) Body() Digest { return a.body }

// Done is closed when the attempt has ended.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Answer returns the attempt's result; nil if it failed or has not ended.
func (a *Attempt) Answer() *Answer {
	a.replays.mu.Lock()
	defer a.replays.mu.Unlock()
	return a.answer
}

// Succeed ends the attempt: its key now stands for answer.
func (a *Attempt) Succeed(answer Answer) {
	a.replays.mu.Lock()
	defer a.replays.mu.Unlock()
	a.answer = &answer
	close(a.done)
}

// Fail ends the attempt unless it has ended: another may begin under its key.
func (a *Attempt) Fail() {
	a.replays.mu.Lock()
	defer a.replays.mu.Unlock()
	if a.answer != nil {
		return
	}
	if a.replays.byKey[a.key] == a {
		a.replays.drop(a)
	}
	close(a.done)
}

// forget drops expired attempts.
func (r *Replays) forget(now time.Time) {
	for first := r.oldest.Front(); first != nil; first = r.oldest.Front() {
		attempt := first.Value.(*Attempt)
		if now.Sub(attempt.began) < r.window {
			return
		}
		r.drop(attempt)
	}
}

func (r *Replays) drop(attempt *Attempt) {
	delete(r.byKey, attempt.key)
	r.oldest.Remove(attempt.aged)
	of := attempt.sender
	of.attempts.Remove(attempt.holding)
	if r.most.Set(of, of.attempts.Len()); of.attempts.Len() == 0 {
		delete(r.senders, of.organization)
	}
}
