package storage

import (
	"slices"
)

// An Appended batch is in the log, and may not be synced yet. The zero
// value is no batch, and synced.
type Appended struct {
	partition *Partition

	Base int64 // offset of its first record
	end  int64
}

// Wait returns once the batch is synced, or why that is unknown.
func (a Appended) Wait() error {
	p := a.partition
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if p.stable >= a.end {
		p.mu.Unlock()
		return nil
	}
	if err := p.writable(); err != nil {
		p.mu.Unlock()
		return err
	}
	done := make(chan error, 1)
	p.waiters = append(p.waiters, waiter{a.end, done})
	p.mu.Unlock()
	return <-done
}

// A waiter waits until all before an offset is synced.
type waiter struct {
	end  int64
	done chan<- error
}

// A Watcher is told when partitions have more to read, or are gone.
type Watcher struct{ C chan struct{} }

func NewWatcher() *Watcher { return &Watcher{make(chan struct{}, 1)} }

func (w *Watcher) tell() {
	select {
	case w.C <- struct{}{}:
	default: // told, and has not looked yet
	}
}

// listeners wait until records are synced, or for more to read.
type listeners struct {
	waiters  []waiter
	watchers map[*Watcher]struct{} // bounded by the connections
}

// reached answers those who waited for an offset.
func (a *listeners) reached(offset int64) {
	a.waiters = slices.DeleteFunc(a.waiters, func(w waiter) bool {
		if w.end > offset {
			return false
		}
		w.done <- nil
		return true
	})
	for w := range a.watchers {
		w.tell()
	}
}

// release ends all waiting with an error.
func (a *listeners) release(err error) {
	for _, w := range a.waiters {
		w.done <- err
	}
	a.waiters = nil
	for w := range a.watchers {
		w.tell()
	}
}

// Watch has w told from now on, until Unwatch.
func (p *Partition) Watch(w *Watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[w] = struct{}{}
	if p.gone {
		w.tell()
	}
}

func (p *Partition) Unwatch(w *Watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, w)
}

// sync has what was appended synced. Appends meanwhile are covered by
// the next round.
func (p *Partition) sync() {
	if !p.store.options.Sync {
		p.settle(p.end)
		return
	}
	if !p.syncing {
		p.syncing = true
		go p.syncRounds()
	}
}

func (p *Partition) syncRounds() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stable < p.end && p.failed == nil && !p.gone {
		last, end := p.last(), p.end
		p.mu.Unlock()
		err := p.store.syncSegment(last)
		p.mu.Lock()
		switch {
		case p.stable >= end: // another file was begun, which synced this one
		case err != nil && !p.gone:
			p.fail(notWritten(last.path, err))
		default:
			p.settle(end)
		}
	}
	p.syncing = false
}

// syncSegment syncs a file and counts it.
func (s *Store) syncSegment(file *segment) error {
	s.syncs.Add(1)
	return file.sync()
}
