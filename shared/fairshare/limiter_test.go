package fairshare_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirlog/weir/shared/fairshare"
)

func acquire(t *testing.T, l *fairshare.Limiter, key string) func() {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, 1)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return lease.Release
}

// One key never exceeds its share, so that another gets a slot at once,
// however many wait for the first.
func TestOneKeyLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairshare.NewLimiter(fairshare.Limits{Capacity: 4, PerKey: 3, Leases: 103, Queue: 1000})
		ctx, cancel := context.WithCancel(t.Context())
		for range 50 {
			go func() { _, _ = l.Acquire(ctx, "noisy", 1) }()
		}
		synctest.Wait()
		if l.Held() != 3 || l.Queued() != 47 {
			t.Fatalf("%d held, %d queued", l.Held(), l.Queued())
		}
		release := acquire(t, l, "quiet")
		release()
		release() // a second call changes nothing
		if l.Held() != 3 {
			t.Errorf("%d held after the release", l.Held())
		}
		cancel()
		synctest.Wait()
		if l.Queued() != 0 {
			t.Errorf("%d queued after all have left", l.Queued())
		}
	})
}

// Waiting keys are served in turn, and each key's waiters in their order.
func TestKeysAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairshare.NewLimiter(fairshare.Limits{Capacity: 1, PerKey: 1, Leases: 11, Queue: 10})
		hold := acquire(t, l, "first")
		var mu sync.Mutex
		var served []string
		for _, name := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
			go func() {
				lease, err := l.Acquire(t.Context(), name[:1], 1)
				if err != nil {
					return
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				lease.Release()
			}()
			synctest.Wait()
		}
		hold()
		synctest.Wait()
		want := []string{"a1", "b1", "c1", "a2", "b2", "a3"}
		if len(served) != len(want) {
			t.Fatalf("served %v", served)
		}
		for i := range want {
			if served[i] != want[i] {
				t.Fatalf("served %v, want %v", served, want)
			}
		}
	})
}

// A key with too many waiters is refused at once; others may wait until
// the queue is full.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairshare.NewLimiter(fairshare.Limits{Capacity: 1, PerKey: 1, Leases: 3, Queue: 3})
		hold := acquire(t, l, "a")
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(key string) {
			go func() { _, _ = l.Acquire(ctx, key, 1) }()
			synctest.Wait()
		}
		wait("a")
		wait("a")
		if _, err := l.Acquire(ctx, "a", 1); !errors.Is(err, fairshare.ErrTooMany) {
			t.Errorf("the third of one key: %v", err)
		}
		wait("b")
		if _, err := l.Acquire(ctx, "b", 1); !errors.Is(err, fairshare.ErrFull) {
			t.Errorf("the fourth of all: %v", err)
		}
		cancel()
		synctest.Wait()
		if _, err := l.Acquire(ctx, "a", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		hold()
		acquire(t, l, "c")()
		if l.Held() != 0 || l.Queued() != 0 {
			t.Errorf("%d held, %d queued at the end", l.Held(), l.Queued())
		}
	})
}

// A few keys that fill the queue exclude no other key: the last waiter of the
// longest line gives way to keys with fewer, until all have as many.
func TestLongestQueueGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fairshare.NewLimiter(fairshare.Limits{Capacity: 1, PerKey: 1, Leases: 5, Queue: 8})
		defer acquire(t, l, "holder")()
		ctx, cancel := context.WithCancel(t.Context())
		refused := map[string]int{}
		var mu sync.Mutex
		wait := func(key string) {
			go func() {
				if _, err := l.Acquire(ctx, key, 1); errors.Is(err, fairshare.ErrFull) {
					mu.Lock()
					defer mu.Unlock()
					refused[key]++
				}
			}()
			synctest.Wait()
		}
		for range 4 {
			wait("a")
			wait("b")
		}
		for _, key := range []string{"c", "d", "c", "d", "c"} {
			wait(key)
		}
		if refused["a"] != 2 || refused["b"] != 2 || refused["c"] != 1 || refused["d"] != 0 || l.Queued() != 8 {
			t.Errorf("refused %v, %d queued", refused, l.Queued())
		}
		cancel()
		synctest.Wait()
		if l.Queued() != 0 {
			t.Errorf("%d queued after all have left", l.Queued())
		}
	})
}

// Under any interleaving no limit is exceeded and no slot is lost.
func TestConcurrently(t *testing.T) {
	l := fairshare.NewLimiter(fairshare.Limits{Capacity: 3, PerKey: 2, Leases: 1002, Queue: 6})
	var mu sync.Mutex
	held, all := map[string]int{}, 0
	count := func(key string, by int) {
		mu.Lock()
		defer mu.Unlock()
		held[key] += by
		if all += by; all > 3 || held[key] > 2 {
			t.Errorf("%d held, %d of them by %s", all, held[key], key)
		}
	}
	var workers sync.WaitGroup
	for i := range 16 {
		workers.Go(func() {
			key := string(rune('a' + i%5))
			for n := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					go cancel()
				}
				if lease, err := l.Acquire(ctx, key, 1); err == nil {
					count(key, 1)
					count(key, -1)
					lease.Release()
				}
				cancel()
			}
		})
	}
	workers.Wait()
	if l.Held() != 0 || l.Queued() != 0 {
		t.Errorf("%d held, %d queued at the end", l.Held(), l.Queued())
	}
}
