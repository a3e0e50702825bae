package admission

import (
	"sync"
	"time"
)

// A Digest is a SHA-256.
type Digest [32]byte

// An Answer is what a request with an idempotency key achieved.
type Answer struct {
	Batch string // id
	Bytes int64  // charged
}

// Replays holds the idempotency keys of the last day that came to this
// process; across processes the inboxes of the log's consumers decide.
// It is bounded: the oldest keys go first.
type Replays struct {
	window time.Duration
	max    int

	mu    sync.Mutex
	byKey map[Digest]*Attempt // bounded by max
	queue []queued            // in the order in which they began
}

type queued struct {
	key     Digest
	attempt *Attempt
}

// An Attempt is a request with an idempotency key.
type Attempt struct {
	replays *Replays
	key     Digest
	body    Digest
	began   time.Time
	done    chan struct{} // closed when it has ended
	answer  *Answer       // nil until it has succeeded
}

// NewReplays remembers at most limit keys, each for window.
func NewReplays(window time.Duration, limit int) *Replays {
	return &Replays{window: window, max: max(limit, 1), byKey: map[Digest]*Attempt{}}
}

// Begin begins an attempt under key. If first is false, the attempt is an
// earlier one of the same key: compare Body, and wait for Done.
func (r *Replays) Begin(key, body Digest, now time.Time) (attempt *Attempt, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	if earlier := r.byKey[key]; earlier != nil {
		return earlier, false
	}
	attempt = &Attempt{replays: r, key: key, body: body, began: now, done: make(chan struct{})}
	r.byKey[key] = attempt
	r.queue = append(r.queue, queued{key, attempt})
	return attempt, true
}

// Len is how many keys are remembered.
func (r *Replays) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey)
}

// Body is the digest of the attempt's body.
func (a *Attempt) Body() Digest { return a.body }

// Done is closed when the attempt has ended.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Answer is what the attempt achieved; nil if it failed or has not ended.
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

// Fail ends the attempt unless it has ended: another one may begin under its key.
func (a *Attempt) Fail() {
	a.replays.mu.Lock()
	defer a.replays.mu.Unlock()
	if a.answer != nil {
		return
	}
	if a.replays.byKey[a.key] == a {
		delete(a.replays.byKey, a.key)
	}
	close(a.done)
}

// forget drops what is too old or over the bound.
func (r *Replays) forget(now time.Time) {
	drop := 0
	for _, oldest := range r.queue {
		if len(r.queue)-drop < r.max && now.Sub(oldest.attempt.began) < r.window {
			break
		}
		if r.byKey[oldest.key] == oldest.attempt {
			delete(r.byKey, oldest.key)
		}
		drop++
	}
	if r.queue = r.queue[drop:]; drop > 0 && len(r.queue) == 0 {
		r.queue = nil
	}
}
