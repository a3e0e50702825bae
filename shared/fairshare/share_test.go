package fairshare_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/weirlog/weir/shared/fairshare"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
