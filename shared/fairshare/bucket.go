package fairshare

import (
	"cmp"
	"maps"
	"sync"
	"time"
)

// window is the time unit of limits: requests per minute.
const window = int64(time.Minute)

// start is when the process began, by the wall and the monotonic clock.
var start = time.Now() //nolint:forbidigo // only an origin: what time it is comes from the caller

// steady is the nanoseconds since 1970 at now, as if the wall clock had
// not been set since start: set back, it must not hold up refills, and
// set forward not make them. A reading without a monotonic part, as a
// test's, counts as it is.
func steady(now time.Time) int64 { return start.UnixNano() + int64(now.Sub(start)) }

// A Bucket is a token bucket in one number: when it will be full again,
// in steady nanoseconds. The zero value is full. This is the
// generic cell rate algorithm (ITU-T I.371): time alone refills it,
// without a ticker.
type Bucket struct {
	full int64
}

// Full reports whether the bucket is full at now, and so equals a new one.
func (b *Bucket) Full(now time.Time) bool { return b.missing(steady(now)) == 0 }

// missing is the time until the bucket is full.
func (b *Bucket) missing(now int64) int64 { return max(0, b.full-now) }

// A Rate limits an amount, such as bytes: PerSecond come back, and a full
// bucket holds Burst. The zero value limits nothing.
type Rate struct{ Burst, PerSecond int64 }

func (r Rate) limits() bool { return r.Burst > 0 && r.PerSecond > 0 }

// refill is the time in which an amount comes back.
func (r Rate) refill(amount int64) int64 {
	return int64(float64(amount) / float64(r.PerSecond) * float64(time.Second))
}

// Spend takes amount, not negative, even from a bucket that holds less:
// past use can't be refused, but what follows can wait.
func (b *Bucket) Spend(now time.Time, amount int64, rate Rate) {
	if rate.limits() {
		b.full = max(b.full, steady(now)) + rate.refill(amount)
	}
}

// Wait returns the time until the bucket holds anything; 0 if it does.
func (b *Bucket) Wait(now time.Time, rate Rate) time.Duration {
	if !rate.limits() {
		return 0
	}
	return time.Duration(max(0, b.missing(steady(now))-rate.refill(rate.Burst)))
}

// Allow spends one, if the bucket holds anything.
func (b *Bucket) Allow(now time.Time, rate Rate) bool {
	if b.Wait(now, rate) > 0 {
		return false
	}
	b.Spend(now, 1, rate)
	return true
}

// Scope names the level of a limit.
type Scope string

// The levels, from the widest to the narrowest.
const (
	ScopeOrganization Scope = "organization"
	ScopeProject      Scope = "project"
	ScopeKey          Scope = "key"
	ScopeClient       Scope = "client" // the address of unauthenticated requests
)

// A Limit is one bucket that a request has to pass. PerMinute tokens,
// at least 1, come back each minute; Burst is how many a full bucket
// holds, PerMinute if it is 0.
type Limit struct {
	Scope     Scope
	PerMinute int
	Burst     int
	Bucket    *Bucket
}

// A Result is a request's outcome, at the level with the fewest tokens left.
type Result struct {
	Allowed    bool
	Scope      Scope
	Limit      int           // requests per minute
	Remaining  int           // whole tokens, never negative
	Full       time.Time     // when that bucket is full again
	RetryAfter time.Duration // 0 if allowed; else when every level has a token, without other requests
}

// Take takes one token from every level, or none. limits is not empty.
func Take(now time.Time, limits []Limit) Result {
	at, wait := steady(now), int64(0)
	for _, limit := range limits {
		wait = max(wait, limit.wait(at))
	}
	if wait == 0 {
		for _, limit := range limits {
			limit.Bucket.full = max(limit.Bucket.full, at) + limit.interval()
		}
	}
	rate := tightest(now, at, limits)
	rate.Allowed, rate.RetryAfter = wait == 0, time.Duration(wait)
	return rate
}

// Peek describes the levels without taking a token: for a request
// refused for another reason.
func Peek(now time.Time, limits []Limit) Result { return tightest(now, steady(now), limits) }

// Refund puts one token back: the request belongs elsewhere.
func Refund(limit Limit) { limit.Bucket.full -= limit.interval() }

// tightest describes the level with the fewest tokens; of several, the
// one that is full last, then the widest. at is steady now.
func tightest(now time.Time, at int64, limits []Limit) Result {
	var rate Result
	most := int64(0)
	for i, limit := range limits {
		missing := limit.Bucket.missing(at)
		remaining := limit.remaining(missing)
		if i == 0 || remaining < rate.Remaining || remaining == rate.Remaining && missing > most {
			rate, most = Result{Scope: limit.Scope, Limit: limit.PerMinute, Remaining: remaining}, missing
		}
	}
	rate.Full = now.Add(time.Duration(most))
	return rate
}

// interval is the time in which one token comes back.
func (l Limit) interval() int64 { return max(1, window/int64(l.PerMinute)) }

// capacity is the time in which an empty bucket fills up.
func (l Limit) capacity() int64 { return l.interval() * int64(cmp.Or(l.Burst, l.PerMinute)) }

// wait returns the time until there is a token; 0 if there is one.
func (l Limit) wait(now int64) int64 {
	return max(0, l.Bucket.missing(now)+l.interval()-l.capacity())
}

func (l Limit) remaining(missing int64) int {
	return int(max(0, (l.capacity()-missing)/l.interval()))
}

// sweepInterval is the least time between two sweeps of a full table.
const sweepInterval = time.Second

// Buckets are those of many keys, such as client networks, up to a fixed
// number. They are not safe for concurrent use: see Table.
type Buckets[K comparable] struct {
	max   int
	byKey map[K]*Bucket // bounded by max
	swept time.Time     // when full ones were last dropped
}

// NewBuckets returns room for limit buckets, at least 1.
func NewBuckets[K comparable](limit int) Buckets[K] { return Buckets[K]{max: max(limit, 1)} }

// Of returns the bucket of a key.
func (b *Buckets[K]) Of(key K, now time.Time) *Bucket {
	found := b.byKey[key]
	if found == nil {
		b.makeRoom(now)
		found = &Bucket{}
		b.byKey[key] = found
	}
	return found
}

// Len is how many there are.
func (b *Buckets[K]) Len() int { return len(b.byKey) }

// makeRoom drops full buckets, which equal new ones, and failing that
// any: new keys must not fill the memory. It sweeps once a second at
// most, so that a flood stays cheap.
func (b *Buckets[K]) makeRoom(now time.Time) {
	if b.byKey == nil {
		b.byKey = map[K]*Bucket{}
	}
	if len(b.byKey) < b.max {
		return
	}
	if now.Sub(b.swept) >= sweepInterval {
		b.swept = now
		maps.DeleteFunc(b.byKey, func(_ K, bucket *Bucket) bool { return bucket.Full(now) })
	}
	for key := range b.byKey {
		if len(b.byKey) < b.max {
			return
		}
		delete(b.byKey, key)
	}
}

// A Table is Buckets that are safe for concurrent use.
type Table[K comparable] struct {
	mu      sync.Mutex
	buckets Buckets[K]
}

// NewTable returns a table of at most limit buckets, at least 1.
func NewTable[K comparable](limit int) *Table[K] { return &Table[K]{buckets: NewBuckets[K](limit)} }

// A KeyLimit is a Limit with the bucket of Key.
type KeyLimit[K comparable] struct {
	Scope     Scope
	Key       K
	PerMinute int
	Burst     int
}

// Take takes one token from the bucket of every limit, or none. There
// is at least one limit.
func (t *Table[K]) Take(now time.Time, keyed ...KeyLimit[K]) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	limits := make([]Limit, len(keyed))
	for i, limit := range keyed {
		limits[i] = t.bound(limit, now)
	}
	return Take(now, limits)
}

// Refund puts back the token of a request that belongs elsewhere.
func (t *Table[K]) Refund(now time.Time, limit KeyLimit[K]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	Refund(t.bound(limit, now))
}

// Spend is Bucket.Spend of the bucket of key.
func (t *Table[K]) Spend(now time.Time, key K, amount int64, rate Rate) {
	if !rate.limits() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buckets.Of(key, now).Spend(now, amount, rate)
}

// Wait is Bucket.Wait of the bucket of key.
func (t *Table[K]) Wait(now time.Time, key K, rate Rate) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.buckets.byKey[key]; found != nil {
		return found.Wait(now, rate)
	}
	return 0
}

// Len returns the number of buckets.
func (t *Table[K]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buckets.Len()
}

func (t *Table[K]) bound(limit KeyLimit[K], now time.Time) Limit {
	return Limit{Scope: limit.Scope, PerMinute: limit.PerMinute, Burst: limit.Burst, Bucket: t.buckets.Of(limit.Key, now)}
}
