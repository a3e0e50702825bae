package admission_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
)

func newPool(limits admission.PoolLimits) *admission.Pool {
	if limits.PerHolder == 0 {
		limits.PerHolder = limits.Bytes
	}
	if limits.Leases == 0 {
		limits.Leases = 1000
	}
	return admission.NewPool(limits, time.Now)
}

// borrow opens a lease of a body that stops at once when evicted.
func borrow(t *testing.T, pool *admission.Pool, holder string, bytes int64) (lease *admission.Lease, over chan struct{}) {
	t.Helper()
	over = make(chan struct{})
	lease, _, err := pool.Open(holder, bytes, func() { close(over) })
	if err != nil {
		t.Fatalf("%s: %v", holder, err)
	}
	go func() {
		select {
		case <-over:
			lease.Close()
		case <-t.Context().Done():
		}
	}()
	return lease, over
}

// While bytes are short, the slowest body of the largest holder is
// evicted for a holder that would still hold less, and no other.
func TestPoolEndsTheGreediest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(admission.PoolLimits{Bytes: 100, Wait: time.Minute})
		fast, _ := borrow(t, pool, "noisy", 30)
		slow, over := borrow(t, pool, "noisy", 40)
		other, _ := borrow(t, pool, "other", 30)
		fast.Received(30)
		time.Sleep(time.Second)
		quiet, waited, err := pool.Open("quiet", 20, func() {})
		if err != nil || waited > recheck {
			t.Fatalf("waited %s: %v", waited, err)
		}
		<-over
		if !slow.Over() || fast.Over() || other.Over() || quiet.Over() || pool.Held() != 80 {
			t.Errorf("slow %t, fast %t, other %t; %d held", slow.Over(), fast.Over(), other.Over(), pool.Held())
		}
	})
}

// recheck exceeds the time until a waiter sees freed memory.
const recheck = time.Second

// A holder never gets another's bytes to hold more than it.
func TestPoolEndsNobodyForTheGreedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(admission.PoolLimits{Bytes: 100, Wait: time.Minute})
		mine, _ := borrow(t, pool, "noisy", 60)
		other, _ := borrow(t, pool, "other", 40)
		waited, err := mine.Grow(1)
		if !errors.Is(err, admission.ErrPoolFull) || waited != time.Minute || other.Over() || pool.Waiting() != 0 {
			t.Errorf("waited %s: %v", waited, err)
		}
	})
}

// A body is safe during its grace; a complete one always.
func TestPoolGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(admission.PoolLimits{Bytes: 100, Grace: 10 * time.Second, Wait: 15 * time.Second})
		young, _ := borrow(t, pool, "noisy", 90)
		quiet, waited, err := pool.Open("quiet", 20, func() {})
		if err != nil || waited < 10*time.Second || waited > 10*time.Second+recheck || !young.Over() {
			t.Errorf("waited %s: %v", waited, err)
		}
		quiet.Close()
		whole, _ := borrow(t, pool, "noisy", 90)
		if err := whole.Complete(); err != nil {
			t.Fatal(err)
		}
		if _, waited, err = pool.Open("quiet", 20, func() {}); !errors.Is(err, admission.ErrPoolFull) || waited != 15*time.Second || whole.Over() {
			t.Errorf("for a whole body: waited %s: %v", waited, err)
		}
	})
}

// A deadlock of bodies ends: one of the largest holder is evicted at
// once, or the youngest refused.
func TestPoolIsNeverStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(admission.PoolLimits{Bytes: 100, Grace: time.Hour, Wait: time.Hour})
		large, _, _ := pool.Open("a", 60, func() { t.Error("it waits: there is nothing to stop") })
		small, _, _ := pool.Open("b", 40, func() {})
		began, ended := time.Now(), make(chan error)
		go func() {
			_, err := large.Grow(1)
			large.Close()
			ended <- err
		}()
		synctest.Wait()
		if _, err := small.Grow(1); err != nil || time.Since(began) > recheck {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := <-ended; !errors.Is(err, admission.ErrTakenAway) {
			t.Errorf("the larger: %v", err)
		}
		second, _, _ := pool.Open("b", 59, func() {})
		go func() {
			_, err := small.Grow(1)
			ended <- err
		}()
		synctest.Wait()
		if _, err := second.Grow(1); !errors.Is(err, admission.ErrPoolFull) || time.Since(began) > recheck {
			t.Errorf("the youngest, after %s: %v", time.Since(began), err)
		}
		second.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A holder has at most its share and so many leases; others are unaffected.
func TestPoolPerHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(admission.PoolLimits{Bytes: 100, PerHolder: 50, Leases: 3, Wait: time.Second})
		borrow(t, pool, "noisy", 25)
		borrow(t, pool, "noisy", 25)
		if _, waited, err := pool.Open("noisy", 1, func() {}); !errors.Is(err, admission.ErrPoolFull) || waited != time.Second {
			t.Errorf("waited %s: %v", waited, err)
		}
		third, _ := borrow(t, pool, "noisy", 0)
		if _, _, err := pool.Open("noisy", 0, func() {}); !errors.Is(err, admission.ErrTooMany) {
			t.Error(err)
		}
		third.Close()
		borrow(t, pool, "quiet", 50)
		if pool.Held() != 100 || pool.Leases() != 3 {
			t.Errorf("%d held by %d", pool.Held(), pool.Leases())
		}
		if _, waited, err := pool.Open("quiet", 51, func() {}); !errors.Is(err, admission.ErrPoolFull) || waited > time.Second {
			t.Errorf("more than there can ever be: waited %s: %v", waited, err)
		}
	})
}

// No interleaving exceeds a limit, and all bytes are returned.
func TestPoolConcurrently(t *testing.T) {
	pool := newPool(admission.PoolLimits{Bytes: 1000, PerHolder: 700, Leases: 6, Wait: 20 * time.Millisecond})
	var held atomic.Int64
	var workers sync.WaitGroup
	for worker := range 16 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			holder := string(rune('a' + worker%5))
			for range 300 {
				first, second := random.Int64N(200), random.Int64N(200)
				lease, _, err := pool.Open(holder, first, func() {})
				if err != nil {
					continue
				}
				if _, err := lease.Grow(second); err == nil {
					if now := held.Add(first + second); now > 1000 {
						t.Errorf("%d bytes are held", now)
					}
					if random.IntN(2) == 0 {
						_ = lease.Complete()
					}
					held.Add(-first - second)
				}
				lease.Shrink(first)
				lease.Close()
			}
		})
	}
	workers.Wait()
	if pool.Held() != 0 || pool.Leases() != 0 || pool.Waiting() != 0 {
		t.Errorf("%d bytes, %d leases, %d waiting at the end", pool.Held(), pool.Leases(), pool.Waiting())
	}
}

// A lease keeps its place when an earlier one of its holder ends; the
// next comes last.
func TestLeasesBefore(t *testing.T) {
	pool := newPool(admission.PoolLimits{Bytes: 100, PerHolder: 100, Leases: 10})
	var leases []*admission.Lease
	for range 4 {
		lease, _, err := pool.Open("a", 1, func() {})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	if _, _, err := pool.Open("b", 1, func() {}); err != nil {
		t.Fatal(err)
	}
	leases[0].Close() // the last one takes its slot
	for i, lease := range leases[1:] {
		if n := pool.Before("a", lease); n != i {
			t.Errorf("%d leases are before the one of place %d", n, i)
		}
	}
	for holder, want := range map[string]int{"a": 3, "b": 1, "c": 0} {
		if n := pool.Before(holder, nil); n != want {
			t.Errorf("%d leases are before the next of %s, want %d", n, holder, want)
		}
	}
}
