package backend

import (
	"strings"
	"sync"
	"testing"
)

// A Lease is what tests hold.
type Lease interface{ End(t testing.TB) }

// A Register holds leases by name: that of a top-level test, or none
// for shared leases. Its zero value is empty.
type Register[L Lease] struct {
	mu    sync.Mutex
	holds map[string]*hold[L]
}

type hold[L Lease] struct {
	lease   L
	holders int
	ready   chan struct{}
	err     error
}

// TopLevel is the name of the top-level test of a test.
func TopLevel(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// Acquire returns the lease of a name, until the test ends: the first holder
// opens it, the last one ends it. The test fails if it can't be opened.
func (r *Register[L]) Acquire(t testing.TB, name string, open func() (L, error)) L {
	t.Helper()
	h, first := r.join(name)
	if first {
		h.lease, h.err = open()
		close(h.ready)
	}
	<-h.ready
	t.Cleanup(func() { r.leave(t, name, h) })
	if h.err != nil {
		t.Fatalf("testenv: %v", h.err)
	}
	return h.lease
}

func (r *Register[L]) join(name string) (h *hold[L], first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds == nil {
		r.holds = map[string]*hold[L]{}
	}
	h, found := r.holds[name]
	if !found {
		h = &hold[L]{ready: make(chan struct{})}
		r.holds[name] = h
	}
	h.holders++
	return h, !found
}

func (r *Register[L]) leave(t testing.TB, name string, h *hold[L]) {
	r.mu.Lock()
	h.holders--
	last := h.holders == 0
	if last {
		delete(r.holds, name)
	}
	r.mu.Unlock()
	if last && h.err == nil {
		h.lease.End(t)
	}
}
