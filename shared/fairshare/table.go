package fairshare

import (
	"maps"
	"sync"
	"time"
)

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
