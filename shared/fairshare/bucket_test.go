package fairshare_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
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
		now := int64(1_800_000_000_000_000_000)
		for range 400 {
			now += int64(random.ExpFloat64() * float64(time.Minute) / float64(1+random.IntN(600)))
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

func checkTake(t *testing.T, now int64, limits []fairshare.Limit, models []modelBucket) {
	t.Helper()
	least := 1e18
	for i := range models {
		models[i].refill(now, limits[i].PerMinute)
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
	if got.Remaining < 0 || got.Remaining > got.Limit || got.Full < now || got.Allowed != (got.RetryAfter == 0) {
		t.Fatalf("impossible: %+v", got)
	}
	if !got.Allowed {
		later := make([]fairshare.Limit, len(limits))
		for i, limit := range limits {
			bucket := *limit.Bucket
			later[i] = fairshare.Limit{Scope: limit.Scope, PerMinute: limit.PerMinute, Bucket: &bucket}
		}
		if again := fairshare.Take(now+int64(got.RetryAfter), later); !again.Allowed {
			t.Fatalf("waiting %v did not help", got.RetryAfter)
		}
	}
}

// A full bucket allows exactly its limit at once; then the limit's
// 60th, and no more, each second.
func TestTakeBurst(t *testing.T) {
	limits := []fairshare.Limit{{Scope: fairshare.ScopeOrganization, PerMinute: 60, Bucket: &fairshare.Bucket{}}}
	now := int64(1_800_000_000_000_000_000)
	for i := range 60 {
		if got := fairshare.Take(now, limits); !got.Allowed || got.Remaining != 59-i {
			t.Fatalf("request %d: %+v", i, got)
		}
	}
	got := fairshare.Take(now, limits)
	if got.Allowed || got.RetryAfter != time.Second || got.Full != now+int64(time.Minute) {
		t.Fatalf("request 61: %+v", got)
	}
	if got := fairshare.Take(now+int64(time.Second), limits); !got.Allowed || got.Remaining != 0 {
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
	now := int64(1_800_000_000_000_000_000)
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
	now := int64(1_800_000_000_000_000_000)
	for range 10_000 {
		now += int64(random.IntN(int(time.Second)))
		limit := fairshare.Limit{Scope: fairshare.ScopeOrganization, PerMinute: 1 + random.IntN(2000), Bucket: bucket}
		if got := fairshare.Take(now, []fairshare.Limit{limit}); got.Remaining < 0 || got.Remaining > limit.PerMinute || got.RetryAfter > time.Minute {
			t.Fatalf("got %+v", got)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	limits, _ := randomLimits(rand.New(rand.NewPCG(1, 1)))
	now := int64(1_800_000_000_000_000_000)
	b.ReportAllocs()
	for b.Loop() {
		now += int64(time.Second)
		fairshare.Take(now, limits)
	}
}
