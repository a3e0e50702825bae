package searches

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// share is how many times an organization's answers must fit into the
// free memory besides. One alone gets a fifth of all; the next finds a
// fifth of the rest.
const share = 4

// errShareUsed means that an organization's answers hold their share.
var errShareUsed = errors.New("the share of the memory for answers is used up")

// answers is the memory of answers, from search to sending, shared among
// organizations. It is safe for concurrent use.
type answers struct {
	limit int64

	mu      sync.Mutex
	held    int64
	ending  int64              // of held: bytes that come back soon, because their readers were stopped
	stops   int64              // readers that were ever stopped
	holders map[string]*holder // bounded by the memory that they hold
	freed   chan struct{}      // closed when bytes come back
}

// A holder exists while it has a lease.
type holder struct {
	key     string
	bytes   int64
	leases  int
	sending []*lease // evictable, the oldest first
}

// A lease is what one answer holds. It belongs to one goroutine.
type lease struct {
	answers *answers
	of      *holder
	bytes   int64
	stop    func() // stops the reader; nil: not evictable
	stopped bool
}

func newAnswers(limit int64) *answers {
	return &answers{limit: limit, holders: map[string]*holder{}, freed: make(chan struct{})}
}

// take lends key at most want bytes by its share, at least least. A key
// without a lease always gets least: if that is not free, readers are
// stopped and it waits. One with a lease gets errShareUsed.
func (a *answers) take(ctx context.Context, key string, least, want int64) (*lease, error) {
	for {
		l, freed, err := a.try(key, least, want)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try lends, or returns a channel that is closed when to retry.
func (a *answers) try(key string, least, want int64) (l *lease, freed <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.holders[key]
	if of == nil {
		of = &holder{key: key}
	}
	free := a.limit - a.held
	got := min(want, (free-share*of.bytes)/(share+1))
	switch {
	case got >= least:
	case of.bytes > 0:
		return nil, nil, errShareUsed
	case free >= least:
		got = least
	default:
		a.makeRoom(least - free)
		return nil, a.freed, nil
	}
	l = &lease{answers: a, of: of}
	a.holders[key] = of
	of.leases++
	a.add(l, got)
	return l, nil, nil
}

// makeRoom stops readers until enough will be returned; none if all
// hold too little.
func (a *answers) makeRoom(missing int64) {
	if a.ending+a.sent() < missing {
		return
	}
	for a.ending < missing {
		of := a.busiest()
		if of == nil {
			return
		}
		oldest := of.sending[0]
		of.sending = of.sending[1:]
		oldest.stopped = true
		a.ending += oldest.bytes
		a.stops++
		oldest.stop()
	}
}

// sent is how many bytes come back if all readers are stopped.
func (a *answers) sent() (bytes int64) {
	for _, of := range a.holders {
		for _, l := range of.sending {
			bytes += l.bytes
		}
	}
	return bytes
}

// busiest is the holder of most bytes among those whose answers
// are being sent, or nil.
func (a *answers) busiest() (most *holder) {
	for _, of := range a.holders {
		if len(of.sending) > 0 && (most == nil || of.bytes > most.bytes) {
			most = of
		}
	}
	return most
}

func (a *answers) add(l *lease, bytes int64) {
	l.bytes += bytes
	l.of.bytes += bytes
	a.held += bytes
	if l.stopped {
		a.ending += bytes
	}
	if bytes < 0 {
		a.wake()
	}
}

// wake lets waiting callers try again.
func (a *answers) wake() {
	close(a.freed)
	a.freed = make(chan struct{})
}

// shrink returns the bytes above a size.
func (l *lease) shrink(bytes int64) {
	l.answers.mu.Lock()
	defer l.answers.mu.Unlock()
	l.answers.add(l, min(0, bytes-l.bytes))
}

// allowEviction lets the lease be ended for others: stop is called at
// most once, never after close, and must not block.
func (l *lease) allowEviction(stop func()) {
	l.answers.mu.Lock()
	defer l.answers.mu.Unlock()
	first := l.stop == nil
	l.stop = stop
	if first {
		l.of.sending = append(l.of.sending, l)
		l.answers.wake() // a waiting claim may have found nothing to stop
	}
}

// close returns everything. It is called once.
func (l *lease) close() {
	a, of := l.answers, l.of
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(l, -l.bytes)
	of.sending = slices.DeleteFunc(of.sending, func(other *lease) bool { return other == l })
	if of.leases--; of.leases == 0 {
		delete(a.holders, of.key)
	}
}

// stoppedReaders is how many readers were stopped for others.
func (a *answers) stoppedReaders() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stops
}

// lent is how many bytes are lent.
func (a *answers) lent() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}
