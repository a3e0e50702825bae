package server

import "sync"

// A budget is memory that connections share. One that needs more than
// all of it gets it alone.
type budget struct {
	mu   sync.Mutex
	more *sync.Cond
	left int
	all  int
}

func newBudget(bytes int) *budget {
	b := &budget{left: bytes, all: bytes}
	b.more = sync.NewCond(&b.mu)
	return b
}

// take waits for so many bytes, and returns how many to give back.
func (b *budget) take(bytes int) int {
	bytes = min(bytes, b.all)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.left < bytes {
		b.more.Wait()
	}
	b.left -= bytes
	return bytes
}

func (b *budget) give(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	b.more.Broadcast()
}
