package fairshare_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/testenv"
)

func newMemory(limits fairshare.Limits) *fairshare.Limiter {
	limits.Clock = time.Now
	return fairshare.NewLimiter(limits)
}

// open opens an evictable lease, and returns how long that took.
func open(t *testing.T, l *fairshare.Limiter, key string, units int64, stop func()) (lease *fairshare.Lease, waited time.Duration, err error) {
	begun := time.Now()
	if lease, err = l.Acquire(t.Context(), key, units); err == nil {
		lease.AllowEviction(stop)
	}
	return lease, time.Since(begun), err
}

// grow is Lease.Grow, and returns how long it took.
func grow(t *testing.T, lease *fairshare.Lease, units int64) (waited time.Duration, err error) {
	begun := time.Now()
	err = lease.Grow(t.Context(), units)
	return time.Since(begun), err
}

// borrow opens a lease of a body that stops at once when evicted.
func borrow(t *testing.T, limiter *fairshare.Limiter, key string, bytes int64) (lease *fairshare.Lease, over chan struct{}) {
	t.Helper()
	over = make(chan struct{})
	lease, _, err := open(t, limiter, key, bytes, func() { close(over) })
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	go func() {
		select {
		case <-over:
			lease.Release()
		case <-t.Context().Done():
		}
	}()
	return lease, over
}

// While bytes are short, the slowest body of the largest key is
// evicted for a key that would still hold less, and no other.
func TestLimiterEndsTheGreediest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMemory(fairshare.Limits{Capacity: 100, Wait: time.Minute})
		fast, _ := borrow(t, limiter, "noisy", 30)
		slow, over := borrow(t, limiter, "noisy", 40)
		other, _ := borrow(t, limiter, "other", 30)
		fast.Progress(30)
		time.Sleep(time.Second)
		quiet, waited, err := open(t, limiter, "quiet", 20, func() {})
		if err != nil || waited > recheck {
			t.Fatalf("waited %s: %v", waited, err)
		}
		<-over
		if !slow.Evicted() || fast.Evicted() || other.Evicted() || quiet.Evicted() || limiter.Held() != 80 {
			t.Errorf("slow %t, fast %t, other %t; %d held", slow.Evicted(), fast.Evicted(), other.Evicted(), limiter.Held())
		}
	})
}

// recheck exceeds the time until a waiter sees freed memory.
const recheck = time.Second

// A key never gets another's bytes to hold more than it.
func TestLimiterEndsNobodyForTheGreedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMemory(fairshare.Limits{Capacity: 100, Wait: time.Minute})
		mine, _ := borrow(t, limiter, "noisy", 60)
		other, _ := borrow(t, limiter, "other", 40)
		waited, err := grow(t, mine, 1)
		if !errors.Is(err, fairshare.ErrFull) || waited != time.Minute || other.Evicted() || limiter.Queued() != 0 {
			t.Errorf("waited %s: %v", waited, err)
		}
	})
}

// A body is safe during its grace; a complete one always.
func TestLimiterGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMemory(fairshare.Limits{Capacity: 100, Grace: 10 * time.Second, Wait: 15 * time.Second})
		young, _ := borrow(t, limiter, "noisy", 90)
		quiet, waited, err := open(t, limiter, "quiet", 20, func() {})
		if err != nil || waited < 10*time.Second || waited > 10*time.Second+recheck || !young.Evicted() {
			t.Errorf("waited %s: %v", waited, err)
		}
		quiet.Release()
		whole, _ := borrow(t, limiter, "noisy", 90)
		testenv.Must(t, whole.Pin())
		if _, waited, err = open(t, limiter, "quiet", 20, func() {}); !errors.Is(err, fairshare.ErrFull) || waited != 15*time.Second || whole.Evicted() {
			t.Errorf("for a whole body: waited %s: %v", waited, err)
		}
	})
}

// A deadlock of bodies ends: one of the largest key is evicted at
// once, or the youngest refused.
func TestLimiterIsNeverStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMemory(fairshare.Limits{Capacity: 100, Grace: time.Hour, Wait: time.Hour})
		large, _, _ := open(t, limiter, "a", 60, func() { t.Error("it waits: there is nothing to stop") })
		small, _, _ := open(t, limiter, "b", 40, func() {})
		began, ended := time.Now(), make(chan error)
		go func() {
			_, err := grow(t, large, 1)
			large.Release()
			ended <- err
		}()
		synctest.Wait()
		if _, err := grow(t, small, 1); err != nil || time.Since(began) > recheck {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := <-ended; !errors.Is(err, fairshare.ErrEvicted) {
			t.Errorf("the larger: %v", err)
		}
		second, _, _ := open(t, limiter, "b", 59, func() {})
		go func() {
			_, err := grow(t, small, 1)
			ended <- err
		}()
		synctest.Wait()
		if _, err := grow(t, second, 1); !errors.Is(err, fairshare.ErrFull) || time.Since(began) > recheck {
			t.Errorf("the youngest, after %s: %v", time.Since(began), err)
		}
		second.Release()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A key has at most its share and so many leases; others are unaffected.
func TestLimiterPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMemory(fairshare.Limits{Capacity: 100, PerKey: 50, Leases: 3, Wait: time.Second})
		borrow(t, limiter, "noisy", 25)
		borrow(t, limiter, "noisy", 25)
		if _, waited, err := open(t, limiter, "noisy", 1, func() {}); !errors.Is(err, fairshare.ErrFull) || waited != time.Second {
			t.Errorf("waited %s: %v", waited, err)
		}
		third, _ := borrow(t, limiter, "noisy", 0)
		if _, _, err := open(t, limiter, "noisy", 0, func() {}); !errors.Is(err, fairshare.ErrTooMany) {
			t.Error(err)
		}
		third.Release()
		borrow(t, limiter, "quiet", 50)
		if limiter.Held() != 100 || limiter.Leases() != 3 {
			t.Errorf("%d held by %d", limiter.Held(), limiter.Leases())
		}
		if _, waited, err := open(t, limiter, "quiet", 51, func() {}); !errors.Is(err, fairshare.ErrFull) || waited > time.Second {
			t.Errorf("more than there can ever be: waited %s: %v", waited, err)
		}
	})
}

// No interleaving exceeds a limit, and all bytes are returned.
func TestLimiterConcurrently(t *testing.T) {
	limiter := newMemory(fairshare.Limits{Capacity: 1000, PerKey: 700, Leases: 6, Wait: 20 * time.Millisecond})
	var held atomic.Int64
	var workers sync.WaitGroup
	for worker := range 16 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			key := string(rune('a' + worker%5))
			for range 300 {
				first, second := random.Int64N(200), random.Int64N(200)
				lease, _, err := open(t, limiter, key, first, func() {})
				if err != nil {
					continue
				}
				if _, err := grow(t, lease, second); err == nil {
					if now := held.Add(first + second); now > 1000 {
						t.Errorf("%d bytes are held", now)
					}
					if random.IntN(2) == 0 {
						_ = lease.Pin()
					}
					held.Add(-first - second)
				}
				lease.Shrink(first)
				lease.Release()
			}
		})
	}
	workers.Wait()
	if limiter.Held() != 0 || limiter.Leases() != 0 || limiter.Queued() != 0 {
		t.Errorf("%d bytes, %d leases, %d waiting at the end", limiter.Held(), limiter.Leases(), limiter.Queued())
	}
}

// A lease keeps its place when an earlier one of its key ends; the
// next comes last.
func TestLeasesBefore(t *testing.T) {
	limiter := newMemory(fairshare.Limits{Capacity: 100, PerKey: 100, Leases: 10})
	var leases []*fairshare.Lease
	for range 4 {
		lease, _, err := open(t, limiter, "a", 1, func() {})
		testenv.Must(t, err)
		leases = append(leases, lease)
	}
	if _, _, err := open(t, limiter, "b", 1, func() {}); err != nil {
		t.Fatal(err)
	}
	leases[0].Release() // the last one takes its slot
	for i, lease := range leases[1:] {
		if n := limiter.Older("a", lease); n != i {
			t.Errorf("%d leases are before the one of place %d", n, i)
		}
	}
	for key, want := range map[string]int{"a": 3, "b": 1, "c": 0} {
		if n := limiter.Older(key, nil); n != want {
			t.Errorf("%d leases are before the next of %s, want %d", n, key, want)
		}
	}
}

// lend lends a key at most so many units by its share, at least one of them.
func lend(t *testing.T, l *fairshare.Limiter, key string, units int64) (*fairshare.Lease, int64) {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, 1)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return lease, lease.Extend(units - 1)
}

// Each gets a fifth of what is free; beyond its share it is refused at
// once, and what is released returns.
func TestShare(t *testing.T) {
	l := fairshare.NewLimiter(fairshare.Limits{Capacity: 100, Share: 4})
	first, alone := lend(t, l, "a", 50)
	second, beside := lend(t, l, "b", 50)
	if alone != 20 || beside != 16 {
		t.Errorf("one alone is lent %d, the second %d", alone, beside)
	}
	if _, err := l.Acquire(t.Context(), "a", 1); !errors.Is(err, fairshare.ErrTooMany) {
		t.Errorf("the first is lent more: %v", err)
	}
	second.Shrink(6)
	second.Shrink(7)
	if l.Held() != 26 {
		t.Errorf("%d are lent", l.Held())
	}
	for range 2 {
		first.Release()
		second.Release()
	}
	if _, lent := lend(t, l, "c", 5); lent != 5 || l.Held() != 5 || l.Leases() != 1 {
		t.Errorf("lent %d, %d in all, %d leases", lent, l.Held(), l.Leases())
	}
}

// A key that holds nothing is served beside many that hold all: the oldest
// lease of the largest is evicted.
func TestShareOfNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity, least = 1000, 20
		l := fairshare.NewLimiter(fairshare.Limits{Capacity: capacity, Share: 4})
		var stopped []string
		for i := range 100 {
			key := fmt.Sprintf("slow-%d", i)
			for range 2 { // the second is refused once there is little left
				lease, err := l.Acquire(t.Context(), key, least)
				if errors.Is(err, fairshare.ErrTooMany) {
					break
				}
				if err != nil || l.Held() > capacity {
					t.Fatalf("%s: %v, %d lent", key, err, l.Held())
				}
				lease.Extend(180)
				lease.AllowEviction(func() {
					stopped = append(stopped, key)
					go lease.Release()
				})
				synctest.Wait()
			}
		}
		if len(stopped) == 0 || stopped[0] != "slow-0" {
			t.Errorf("stopped: %q", stopped)
		}
	})
}

// A wait for what can't be evicted ends with its context, and no more is
// evicted than needed, none in vain.
func TestEvictsOnlyWhatHelps(t *testing.T) {
	l := fairshare.NewLimiter(fairshare.Limits{Capacity: 100, Share: 4})
	var leases []*fairshare.Lease
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		lease, err := l.Acquire(t.Context(), key, 20)
		testenv.Must(t, err)
		leases = append(leases, lease)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Acquire(ctx, "f", 20); !errors.Is(err, context.Canceled) {
		t.Errorf("beside work that can't be evicted: %v", err)
	}
	stops := 0
	for i, lease := range leases {
		lease.AllowEviction(func() { stops++ })
		if _, err := l.Acquire(ctx, "f", 40); i == 0 && (stops > 0 || !errors.Is(err, context.Canceled)) {
			t.Errorf("%d evicted in vain: %v", stops, err)
		}
	}
	for range 3 {
		_, _ = l.Acquire(ctx, "f", 40)
	}
	if stops != 2 || l.Evictions() != 2 {
		t.Errorf("%d are evicted for one, %d counted", stops, l.Evictions())
	}
}
