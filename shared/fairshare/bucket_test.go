package fairshare_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/testenv/wallclock"
)

// modelBucket is a textbook token bucket, in fractions of a token.
type modelBucket struct {
	tokens float64
	at     int64
}

func (m *modelBucket) refill(now int64, limit int) {
	if m.at == 0 {
		m.tokens = float64(limit)
	}
	m.tokens = min(float64(limit), m.tokens+float64(now-m.at)*float64(limit)/float64(time.Minute))
	m.at = now
}

// Three levels behave like three textbook buckets from which a request
// takes one token each or none, under random arrivals: in admission, in
// whole tokens left at the tightest level, and in that waiting for
// RetryAfter always helps.
func TestTakeAgreesWithModel(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		limits, models := randomLimits(random)
		now := start
		for range 400 {
			now = now.Add(time.Duration(random.ExpFloat64() * float64(time.Minute) / float64(1+random.IntN(600))))
			checkTake(t, now, limits, models)
		}
	}
}

func randomLimits(random *rand.Rand) ([]fairshare.Limit, []modelBucket) {
	organization := []int{1, 7, 60, 300, 1800}[random.IntN(5)]
	limits := []fairshare.Limit{
		{Scope: fairshare.ScopeOrganization, PerMinute: organization, Bucket: &fairshare.Bucket{}},
		{Scope: fairshare.ScopeProject, PerMinute: organization, Bucket: &fairshare.Bucket{}},
		{Scope: fairshare.ScopeKey, PerMinute: 1 + random.IntN(organization), Bucket: &fairshare.Bucket{}},
	}
	return limits, make([]modelBucket, 3)
}

func checkTake(t *testing.T, now time.Time, limits []fairshare.Limit, models []modelBucket) {
	t.Helper()
	least := 1e18
	for i := range models {
		models[i].refill(now.UnixNano(), limits[i].PerMinute)
		least = min(least, models[i].tokens)
	}
	got := fairshare.Take(now, limits)
	if undecided := least > 1-1e-4 && least < 1+1e-4; !undecided && got.Allowed != (least >= 1) {
		t.Fatalf("allowed %t with %f tokens", got.Allowed, least)
	}
	left := 1e18
	for i := range models {
		if got.Allowed {
			models[i].tokens--
		}
		left = min(left, models[i].tokens)
	}
	if d := float64(got.Remaining) - left; d > 1e-3 || d < -1-1e-3 {
		t.Fatalf("%d tokens left, the model has %f", got.Remaining, left)
	}
	if got.Remaining < 0 || got.Remaining > got.Limit || got.Full.Before(now) || got.Allowed != (got.RetryAfter == 0) {
		t.Fatalf("impossible: %+v", got)
	}
	if !got.Allowed {
		later := make([]fairshare.Limit, len(limits))
		for i, limit := range limits {
			bucket := *limit.Bucket
			later[i] = fairshare.Limit{Scope: limit.Scope, PerMinute: limit.PerMinute, Bucket: &bucket}
		}
		if again := fairshare.Take(now.Add(got.RetryAfter), later); !again.Allowed {
			t.Fatalf("waiting %v did not help", got.RetryAfter)
		}
	}
}

// A full bucket allows exactly its limit at once; then the limit's
// 60th, and no more, each second.
func TestTakeBurst(t *testing.T) {
	limits := []fairshare.Limit{{Scope: fairshare.ScopeOrganization, PerMinute: 60, Bucket: &fairshare.Bucket{}}}
	now := start
	for i := range 60 {
		if got := fairshare.Take(now, limits); !got.Allowed || got.Remaining != 59-i {
			t.Fatalf("request %d: %+v", i, got)
		}
	}
	got := fairshare.Take(now, limits)
	if got.Allowed || got.RetryAfter != time.Second || !got.Full.Equal(now.Add(time.Minute)) {
		t.Fatalf("request 61: %+v", got)
	}
	if got := fairshare.Take(now.Add(time.Second), limits); !got.Allowed || got.Remaining != 0 {
		t.Fatalf("a second later: %+v", got)
	}
}

// A request refused by one level takes no token from the others, and
// its result is that level's.
func TestTakeAllOrNone(t *testing.T) {
	organization, key := &fairshare.Bucket{}, &fairshare.Bucket{}
	limits := []fairshare.Limit{
		{Scope: fairshare.ScopeOrganization, PerMinute: 100, Bucket: organization},
		{Scope: fairshare.ScopeKey, PerMinute: 1, Bucket: key},
	}
	now := start
	fairshare.Take(now, limits)
	for range 10 {
		if got := fairshare.Take(now, limits); got.Allowed || got.Scope != fairshare.ScopeKey || got.RetryAfter != time.Minute {
			t.Fatalf("got %+v", got)
		}
	}
	if got := fairshare.Take(now, limits[:1]); !got.Allowed || got.Remaining != 98 {
		t.Fatalf("the organization lost tokens: %+v", got)
	}
}

// A limit that changes at any time keeps the numbers in their range.
func TestTakeWithChangingLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	bucket := &fairshare.Bucket{}
	now := start
	for range 10_000 {
		now = now.Add(time.Duration(random.IntN(int(time.Second))))
		limit := fairshare.Limit{Scope: fairshare.ScopeOrganization, PerMinute: 1 + random.IntN(2000), Bucket: bucket}
		if got := fairshare.Take(now, []fairshare.Limit{limit}); got.Remaining < 0 || got.Remaining > limit.PerMinute || got.RetryAfter > time.Minute {
			t.Fatalf("got %+v", got)
		}
	}
}

// Setting the machine's clock neither takes tokens nor gives any; when a
// bucket is full again is told by the clock as it is.
func TestSetClock(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour} {
		before, rate := time.Now(), fairshare.Rate{Burst: 60, PerSecond: 1}
		after := wallclock.Set(before, by)
		table := fairshare.NewTable[string](10)
		limit := fairshare.KeyLimit[string]{Scope: fairshare.ScopeKey, Key: "requests", PerMinute: 60}
		for range 30 {
			table.Take(before, limit)
		}
		table.Spend(before, "bytes", 90, rate)
		if wait := table.Wait(after, "bytes", rate); wait != 30*time.Second {
			t.Errorf("set by %s: bytes wait for %s", by, wait)
		}
		for i := range 30 {
			if got := table.Take(after, limit); !got.Allowed || got.Remaining != 29-i {
				t.Fatalf("set by %s: request %d: %+v", by, i, got)
			}
		}
		got := table.Take(after, limit)
		if got.Allowed || got.RetryAfter != time.Second || got.Full.Unix() != after.Unix()+60 {
			t.Errorf("set by %s: one more than the burst: %+v", by, got)
		}
		if got = table.Take(after.Add(time.Second), limit); !got.Allowed || got.Remaining != 0 {
			t.Errorf("set by %s: a second later: %+v", by, got)
		}
	}
}

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
