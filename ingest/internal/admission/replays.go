package admission

import (
	"container/list"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

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
