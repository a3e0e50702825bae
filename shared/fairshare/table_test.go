package fairshare_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

var start = time.Unix(1_800_000_000, 0)

func ask(key int) fairshare.KeyLimit[int] {
	return fairshare.KeyLimit[int]{Scope: fairshare.ScopeClient, Key: key, PerMinute: 6, Burst: 3}
}

// A key gets its burst at once, then one more each interval; waiting
// for RetryAfter always helps, and keys are independent.
func TestTable(t *testing.T) {
	table := fairshare.NewTable[int](10)
	for i := range 3 {
		if got := table.Take(start, ask(1)); !got.Allowed || got.Remaining != 2-i {
			t.Fatalf("request %d: %+v", i+1, got)
		}
	}
	for range 5 { // a refused request takes nothing
		if got := table.Take(start, ask(1)); got.Allowed || got.RetryAfter != 10*time.Second {
			t.Fatalf("the fourth: %+v", got)
		}
	}
	if got := table.Take(start, ask(2)); !got.Allowed {
		t.Errorf("another key: %+v", got)
	}
	later := start.Add(10 * time.Second)
	if first, second := table.Take(later, ask(1)), table.Take(later, ask(1)); !first.Allowed || second.Allowed {
		t.Errorf("after the wait: %+v, then %+v", first, second)
	}
	table.Refund(later, ask(1))
	if !table.Take(later, ask(1)).Allowed {
		t.Error("what was put back is not there")
	}
}

// However many keys come, the number of buckets is bounded, and the
// newest key is still limited.
func TestTableIsBounded(t *testing.T) {
	table := fairshare.NewTable[int](100)
	for key := range 10_000 {
		table.Take(start, ask(key))
		if n := table.Len(); n > 100 {
			t.Fatalf("%d buckets after %d keys", n, key+1)
		}
	}
	for range 2 {
		table.Take(start, ask(9_999))
	}
	if table.Take(start, ask(9_999)).Allowed {
		t.Error("the newest key is not limited")
	}
}

// Spending beyond the capacity blocks until it has come back, and no longer.
func TestSpend(t *testing.T) {
	rate := fairshare.Rate{Burst: 1000, PerSecond: 100}
	table := fairshare.NewTable[string](10)
	if wait := table.Wait(start, "acme", rate); wait != 0 || table.Len() != 0 {
		t.Fatalf("a new key waits %s; %d buckets", wait, table.Len())
	}
	table.Spend(start, "acme", 1500, rate)
	for after, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 2 * time.Second: 3 * time.Second, 5 * time.Second: 0, time.Hour: 0} {
		if wait := table.Wait(start.Add(after), "acme", rate); wait != want {
			t.Errorf("after %s the wait is %s, want %s", after, wait, want)
		}
	}
}
