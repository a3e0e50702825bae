package ingest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

// modelBucket is a token bucket as textbooks have it, in fractions of a token.
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

// Three levels behave like three textbook buckets of which a request takes one token each or none, under random
// arrivals: admission, whole tokens left at the tightest level, and that waiting as told always helps.
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

func randomLimits(random *rand.Rand) ([]ingest.RateLimit, []modelBucket) {
	organization := []int{1, 7, 60, 300, 1800}[random.IntN(5)]
	limits := []ingest.RateLimit{
		{Scope: ingest.ScopeOrganization, Limit: organization, Bucket: &ingest.Bucket{}},
		{Scope: ingest.ScopeProject, Limit: organization, Bucket: &ingest.Bucket{}},
		{Scope: ingest.ScopeKey, Limit: 1 + random.IntN(organization), Bucket: &ingest.Bucket{}},
	}
	return limits, make([]modelBucket, 3)
}

func checkTake(t *testing.T, now int64, limits []ingest.RateLimit, models []modelBucket) {
	t.Helper()
	least := 1e18
	for i := range models {
		models[i].refill(now, limits[i].Limit)
		least = min(least, models[i].tokens)
	}
	rate := ingest.Take(now, limits)
	if undecided := least > 1-1e-4 && least < 1+1e-4; !undecided && rate.Allowed != (least >= 1) {
		t.Fatalf("allowed %t with %f tokens", rate.Allowed, least)
	}
	left := 1e18
	for i := range models {
		if rate.Allowed {
			models[i].tokens--
		}
		left = min(left, models[i].tokens)
	}
	if d := float64(rate.Remaining) - left; d > 1e-3 || d < -1-1e-3 {
		t.Fatalf("%d tokens left, the model has %f", rate.Remaining, left)
	}
	if rate.Remaining < 0 || rate.Remaining > rate.Limit || rate.Full < now || rate.Allowed != (rate.RetryAfter == 0) {
		t.Fatalf("impossible: %+v", rate)
	}
	if !rate.Allowed {
		later := make([]ingest.RateLimit, len(limits))
		for i, limit := range limits {
			bucket := *limit.Bucket
			later[i] = ingest.RateLimit{Scope: limit.Scope, Limit: limit.Limit, Bucket: &bucket}
		}
		if again := ingest.Take(now+int64(rate.RetryAfter), later); !again.Allowed {
			t.Fatalf("waiting %v did not help", rate.RetryAfter)
		}
	}
}

// A full bucket lets exactly its limit pass at once; then the limit's 60th, and no more, each second.
func TestTakeBurst(t *testing.T) {
	limits := []ingest.RateLimit{{Scope: ingest.ScopeOrganization, Limit: 60, Bucket: &ingest.Bucket{}}}
	now := int64(1_800_000_000_000_000_000)
	for i := range 60 {
		if rate := ingest.Take(now, limits); !rate.Allowed || rate.Remaining != 59-i {
			t.Fatalf("request %d: %+v", i, rate)
		}
	}
	rate := ingest.Take(now, limits)
	if rate.Allowed || rate.RetryAfter != time.Second || rate.Full != now+int64(time.Minute) {
		t.Fatalf("request 61: %+v", rate)
	}
	if rate := ingest.Take(now+int64(time.Second), limits); !rate.Allowed || rate.Remaining != 0 {
		t.Fatalf("a second later: %+v", rate)
	}
}

// A request that one level refuses takes no token from the others, and is told of that level.
func TestTakeAllOrNone(t *testing.T) {
	organization, key := &ingest.Bucket{}, &ingest.Bucket{}
	limits := []ingest.RateLimit{
		{Scope: ingest.ScopeOrganization, Limit: 100, Bucket: organization},
		{Scope: ingest.ScopeKey, Limit: 1, Bucket: key},
	}
	now := int64(1_800_000_000_000_000_000)
	ingest.Take(now, limits)
	for range 10 {
		if rate := ingest.Take(now, limits); rate.Allowed || rate.Scope != ingest.ScopeKey || rate.RetryAfter != time.Minute {
			t.Fatalf("got %+v", rate)
		}
	}
	if rate := ingest.Take(now, limits[:1]); !rate.Allowed || rate.Remaining != 98 {
		t.Fatalf("the organization lost tokens: %+v", rate)
	}
}

// A limit that changes at any time never makes the numbers leave their range.
func TestTakeWithChangingLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	bucket := &ingest.Bucket{}
	now := int64(1_800_000_000_000_000_000)
	for range 10_000 {
		now += int64(random.IntN(int(time.Second)))
		limit := ingest.RateLimit{Scope: ingest.ScopeOrganization, Limit: 1 + random.IntN(2000), Bucket: bucket}
		if rate := ingest.Take(now, []ingest.RateLimit{limit}); rate.Remaining < 0 || rate.Remaining > limit.Limit || rate.RetryAfter > time.Minute {
			t.Fatalf("got %+v", rate)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	limits, _ := randomLimits(rand.New(rand.NewPCG(1, 1)))
	now := int64(1_800_000_000_000_000_000)
	b.ReportAllocs()
	for b.Loop() {
		now += int64(time.Second)
		ingest.Take(now, limits)
	}
}
