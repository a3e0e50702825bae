package fair

import (
	"context"
	"errors"
	"sync"
)

// ErrFull means that a key, or all of them together, have too many waiters.
var ErrFull = errors.New("too many are waiting")

// Limits bound a Queue. Each is at least 1.
type Limits struct {
	Slots   int // held at once, by all keys
	PerKey  int // held at once by one key
	Waiting int // waiting at once for one key
	Queued  int // waiting at once for all keys
}

// A Queue lends slots. Keys are served in turn, one slot each,
// whatever the number of their waiters, who are served in order. It is
// safe for concurrent use.
type Queue struct {
	limits Limits

	mu     sync.Mutex
	held   int
	queued int
	keys   map[string]*line // bounded by Limits.Queued and Limits.Slots: unused keys are forgotten
	turns  []*line          // keys with waiters, the next one first
}

// A line is a key's slots and waiters. An empty one is forgotten.
type line struct {
	key     string
	held    int
	waiters []*waiter
}

// A waiter waits for one slot.
type waiter struct {
	decided chan struct{} // closed once it has its slot, or gives way
	gaveWay bool          // to a key with fewer waiters; valid once decided is closed
}

// NewQueue returns an empty queue.
func NewQueue(limits Limits) *Queue { return &Queue{limits: limits, keys: map[string]*line{}} }

// Acquire waits until key has a slot, which release returns; release
// may be called more than once. It returns the error of ctx, or
// ErrFull: at once, or when the queue is full and key has most waiters.
func (q *Queue) Acquire(ctx context.Context, key string) (release func(), err error) {
	own, w, err := q.join(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.decided:
	case <-ctx.Done():
		if q.leave(own, w) {
			return nil, ctx.Err()
		}
	}
	if w.gaveWay {
		return nil, ErrFull
	}
	return sync.OnceFunc(func() { q.giveBack(own) }), nil
}

// Held returns how many slots are held.
func (q *Queue) Held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// Queued returns how many wait.
func (q *Queue) Queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued
}

func (q *Queue) join(key string) (*line, *waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.keys[key]
	if own == nil {
		own = &line{key: key}
	}
	if !q.free(own) && (len(own.waiters) >= q.limits.Waiting || q.queued >= q.limits.Queued && !q.makeRoom(own)) {
		return nil, nil, ErrFull
	}
	q.keys[key] = own
	w := &waiter{decided: make(chan struct{})}
	if own.waiters = append(own.waiters, w); len(own.waiters) == 1 {
		q.turns = append(q.turns, own)
	}
	q.queued++
	q.serve()
	return own, w, nil
}

// free reports whether a newcomer gets a slot at once.
func (q *Queue) free(own *line) bool {
	return q.held < q.limits.Slots && own.held < q.limits.PerKey && len(own.waiters) == 0
}

// makeRoom removes the last waiter of the longest line for one more of
// own. It returns false if no line would remain longer than own: few
// keys must not shut the others out.
func (q *Queue) makeRoom(own *line) bool {
	longest := own
	for _, other := range q.turns {
		if len(other.waiters) > len(longest.waiters) {
			longest = other
		}
	}
	last := len(longest.waiters) - 1
	if last <= len(own.waiters) {
		return false
	}
	w := longest.waiters[last]
	longest.waiters = longest.waiters[:last:last]
	w.gaveWay = true
	close(w.decided)
	q.queued--
	return true
}

// serve gives free slots in turn. It skips a key at its limit, which
// keeps its place.
func (q *Queue) serve() {
	for i := 0; i < len(q.turns) && q.held < q.limits.Slots; {
		next := q.turns[i]
		if next.held >= q.limits.PerKey {
			i++
			continue
		}
		close(next.waiters[0].decided)
		next.waiters = next.waiters[1:]
		next.held++
		q.held++
		q.queued--
		q.turns = append(q.turns[:i], q.turns[i+1:]...)
		if len(next.waiters) > 0 {
			q.turns = append(q.turns, next)
		}
	}
}

// leave removes a waiter whose request ended; false: it was just decided.
func (q *Queue) leave(own *line, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range own.waiters {
		if other == w {
			own.waiters = append(own.waiters[:i:i], own.waiters[i+1:]...)
			q.queued--
			q.forget(own)
			return true
		}
	}
	return false
}

func (q *Queue) giveBack(own *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	own.held--
	q.held--
	q.serve()
	q.forget(own)
}

// forget drops an unused key, and the place of one without waiters.
func (q *Queue) forget(own *line) {
	if len(own.waiters) > 0 {
		return
	}
	for i, other := range q.turns {
		if other == own {
			q.turns = append(q.turns[:i], q.turns[i+1:]...)
			break
		}
	}
	if own.held == 0 {
		delete(q.keys, own.key)
	}
}
