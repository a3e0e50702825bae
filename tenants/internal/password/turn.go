package password

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weirlog/weir/shared/fair"
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
	anonymous, known *fair.Queue
	rest             time.Duration // of an anonymous slot
}

// slots is how many passwords each queue hashes at once.
func slots() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), maxSlots) }

func newTurns(cost Cost) turns {
	return turns{
		rest:      time.Duration(cost.Memory) * time.Duration(cost.Passes) * restPerKiB,
		anonymous: fair.NewQueue(fair.Limits{Slots: slots(), PerKey: perKey, Waiting: waitingPerNetwork, Queued: waitingAnonymous}),
		known:     fair.NewQueue(fair.Limits{Slots: slots(), PerKey: perKey, Waiting: waitingPerTenant, Queued: waitingKnown}),
	}
}

// take waits for a turn, which release ends.
func (t turns) take(ctx context.Context, who Asker) (release func(), err error) {
	queue := t.anonymous
	if who.known {
		queue = t.known
	}
	bounded, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	release, err = queue.Acquire(bounded, who.key)
	if errors.Is(err, fair.ErrFull) || err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err == nil && ctx.Err() != nil { // gave up while it was served
		release()
		err = ctx.Err()
	}
	if err == nil && !who.known {
		release = t.afterRest(release)
	}
	return release, err
}

// afterRest releases a slot after its rest.
func (t turns) afterRest(release func()) func() {
	return func() { time.AfterFunc(t.rest, release) }
}

// A Load is how many hash, and how many wait.
type Load struct {
	Held, Waiting int
}

// Anonymous is the load of anonymous askers.
func (h *Hasher) Anonymous() Load { return Load{h.turns.anonymous.Held(), h.turns.anonymous.Queued()} }

// Known is the load of all others.
func (h *Hasher) Known() Load { return Load{h.turns.known.Held(), h.turns.known.Queued()} }
