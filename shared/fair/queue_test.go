package fair_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirlog/weir/shared/fair"
)

func acquire(t *testing.T, q *fair.Queue, key string) func() {
	t.Helper()
	release, err := q.Acquire(t.Context(), key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return release
}

// One key never exceeds its share, so that another gets a slot at once,
// however many wait for the first.
func TestOneKeyLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(fair.Limits{Slots: 4, PerKey: 3, Waiting: 100, Queued: 1000})
		ctx, cancel := context.WithCancel(t.Context())
		for range 50 {
			go func() { _, _ = q.Acquire(ctx, "noisy") }()
		}
		synctest.Wait()
		if q.Held() != 3 || q.Queued() != 47 {
			t.Fatalf("%d held, %d queued", q.Held(), q.Queued())
		}
		release := acquire(t, q, "quiet")
		release()
		release() // a second call changes nothing
		if q.Held() != 3 {
			t.Errorf("%d held after the release", q.Held())
		}
		cancel()
		synctest.Wait()
		if q.Queued() != 0 {
			t.Errorf("%d queued after all have left", q.Queued())
		}
	})
}

// Waiting keys are served in turn, and each key's waiters in their order.
func TestKeysAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(fair.Limits{Slots: 1, PerKey: 1, Waiting: 10, Queued: 10})
		hold := acquire(t, q, "first")
		var mu sync.Mutex
		var served []string
		for _, name := range []string{"a1", "a2", "a3", "b1", "c1", "b2"} {
			go func() {
				release, err := q.Acquire(t.Context(), name[:1])
				if err != nil {
					return
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				release()
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
		q := fair.NewQueue(fair.Limits{Slots: 1, PerKey: 1, Waiting: 2, Queued: 3})
		hold := acquire(t, q, "a")
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(key string) {
			go func() { _, _ = q.Acquire(ctx, key) }()
			synctest.Wait()
		}
		wait("a")
		wait("a")
		if _, err := q.Acquire(ctx, "a"); !errors.Is(err, fair.ErrFull) {
			t.Errorf("the third of one key: %v", err)
		}
		wait("b")
		if _, err := q.Acquire(ctx, "b"); !errors.Is(err, fair.ErrFull) {
			t.Errorf("the fourth of all: %v", err)
		}
		cancel()
		synctest.Wait()
		if _, err := q.Acquire(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		hold()
		acquire(t, q, "c")()
		if q.Held() != 0 || q.Queued() != 0 {
			t.Errorf("%d held, %d queued at the end", q.Held(), q.Queued())
		}
	})
}

// A few keys that fill the queue exclude no other key: the last waiter of the
// longest line gives way to keys with fewer, until all have as many.
func TestLongestQueueGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fair.NewQueue(fair.Limits{Slots: 1, PerKey: 1, Waiting: 4, Queued: 8})
		defer acquire(t, q, "holder")()
		ctx, cancel := context.WithCancel(t.Context())
		refused := map[string]int{}
		var mu sync.Mutex
		wait := func(key string) {
			go func() {
				if _, err := q.Acquire(ctx, key); errors.Is(err, fair.ErrFull) {
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
		if refused["a"] != 2 || refused["b"] != 2 || refused["c"] != 1 || refused["d"] != 0 || q.Queued() != 8 {
			t.Errorf("refused %v, %d queued", refused, q.Queued())
		}
		cancel()
		synctest.Wait()
		if q.Queued() != 0 {
			t.Errorf("%d queued after all have left", q.Queued())
		}
	})
}

// Under any interleaving no limit is exceeded and no slot is lost.
func TestConcurrently(t *testing.T) {
	q := fair.NewQueue(fair.Limits{Slots: 3, PerKey: 2, Waiting: 1000, Queued: 6})
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
				if release, err := q.Acquire(ctx, key); err == nil {
					count(key, 1)
					count(key, -1)
					release()
				}
				cancel()
			}
		})
	}
	workers.Wait()
	if q.Held() != 0 || q.Queued() != 0 {
		t.Errorf("%d held, %d queued at the end", q.Held(), q.Queued())
	}
}
