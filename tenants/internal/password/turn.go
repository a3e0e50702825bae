package password

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// ErrBusy means that too many passwords wait
// to be hashed: try again after RetryAfter.
var ErrBusy = errors.New("too many passwords are waiting to be hashed")

// RetryAfter is when to try again: the longest queue is served by then.
const RetryAfter = 5 * time.Second

// Bounds of hashing. Unknown and known devices have a queue
// each, with slots for half of the processors, between 1 and
// maxSlots: so the former delay nobody else, and hashing takes
// at most 4 x 19 MiB. Nobody waits longer than waitTimeout.
const (
	maxSlots    = 2
	perKey      = 1
	waitTimeout = 3 * time.Second
)

// restPerKiB is how long an anonymous slot rests after a hash, for
// each KiB of each pass: about three times the hash's duration, so
// that guesses get a quarter of a processor for each slot.
const restPerKiB = 2500 * time.Nanosecond

// Most waiters, of one key and in all. A hash and its rest take
// some 150 ms, so the longest queue is served within waitTimeout.
const (
	waitingPerNetwork = 4
	waitingAnonymous  = 16
	waitingPerTenant  = 16
	waitingKnown      = 256
)

// An Asker has its turn at hashing.
type Asker struct {
	known bool
	key   string
}

// Anonymous is an asker known only by its
// client network. Networks are served in turn.
func Anonymous(network string) Asker { return Asker{key: network} }

// Known is an asker of an organization, by a session, a code, a
// token or a recognized device. Organizations are served in turn.
func Known(organization string) Asker { return Asker{known: true, key: organization} }

// turns are the two queues.
type turns struct {
	anonymous, known *fairshare.Limiter
	rest             time.Duration // of an anonymous slot
}

// slots is how many passwords each queue hashes at once.
func slots() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), maxSlots) }

func newTurns(cost Cost) turns {
	return turns{
		rest:      time.Duration(cost.Memory) * time.Duration(cost.Passes) * restPerKiB,
		anonymous: newQueue(waitingPerNetwork, waitingAnonymous),
		known:     newQueue(waitingPerTenant, waitingKnown),
	}
}

func newQueue(ofOne, ofAll int) *fairshare.Limiter {
	return fairshare.NewLimiter(fairshare.Limits{
		Capacity: int64(slots()), PerKey: perKey, Leases: perKey + ofOne, Queue: ofAll, Wait: waitTimeout,
	})
}

// take waits for a turn, which release ends.
func (t turns) take(ctx context.Context, who Asker) (release func(), err error) {
	queue := t.anonymous
	if who.known {
		queue = t.known
	}
	lease, err := queue.Acquire(ctx, who.key, 1)
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%w: %w", ErrBusy, err)
	case err != nil:
		return nil, err
	case ctx.Err() != nil: // gave up while it was served
		lease.Release()
		return nil, ctx.Err()
	case who.known:
		return lease.Release, nil
	}
	return func() { time.AfterFunc(t.rest, lease.Release) }, nil
}

// A Load is how many hash, and how many wait.
type Load struct {
	Held, Waiting int
}

func loadOf(queue *fairshare.Limiter) Load { return Load{int(queue.Held()), queue.Queued()} }

// Anonymous is the load of anonymous askers.
func (h *Hasher) Anonymous() Load { return loadOf(h.turns.anonymous) }

// Known is the load of all others.
func (h *Hasher) Known() Load { return loadOf(h.turns.known) }
