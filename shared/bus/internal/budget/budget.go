package budget

import (
	"context"
	"sync"

	"github.com/weirlog/weir/shared/bus"
)

// Budget bounds the bytes in use, first come, first served, so that a
// large request does not starve.
type Budget struct {
	mu      sync.Mutex
	limit   int
	used    int
	waiting []*claim
	closed  bool
}

type claim struct {
	size    int
	granted chan bool // one value: true granted, false closed
}

func New(limit int) *Budget { return &Budget{limit: limit} }

// Take waits until n bytes fit. More than the whole budget fits if
// nothing else is in use.
func (b *Budget) Take(ctx context.Context, n int) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return bus.ErrClosed
	}
	if len(b.waiting) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	mine := &claim{n, make(chan bool, 1)}
	b.waiting = append(b.waiting, mine)
	b.mu.Unlock()
	select {
	case ok := <-mine.granted:
		return grantedOr(ok)
	case <-ctx.Done():
		return b.withdraw(mine, ctx.Err())
	}
}

func grantedOr(ok bool) error {
	if !ok {
		return bus.ErrClosed
	}
	return nil
}

// withdraw withdraws a claim that may have just been granted.
func (b *Budget) withdraw(mine *claim, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range b.waiting {
		if c == mine {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.grant()
			return err
		}
	}
	if <-mine.granted {
		b.used -= mine.size
		b.grant()
	}
	return err
}

func (b *Budget) fits(n int) bool { return b.used == 0 || b.used+n <= b.limit }

// Give returns n bytes.
func (b *Budget) Give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.grant()
}

func (b *Budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].size) {
		next := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.used += next.size
		next.granted <- true
	}
}

// Close refuses all present and later claims.
func (b *Budget) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, c := range b.waiting {
		c.granted <- false
	}
	b.waiting = nil
}
