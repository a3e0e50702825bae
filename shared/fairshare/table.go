package fairshare

import (
	"sync"
	"time"
)

// sweepInterval is the least time between two sweeps of a full table.
const sweepInterval = int64(time.Second)

// A Table holds a bucket for each of many keys, such as client
// networks, up to a fixed number. It is safe for concurrent use.
type Table[K comparable] struct {
	max int

	mu      sync.Mutex
	buckets map[K]*Bucket // bounded by max
	swept   int64         // when full buckets were last dropped
}

// NewTable returns a table of at most limit buckets, at least 1.
func NewTable[K comparable](limit int) *Table[K] {
	return &Table[K]{max: max(limit, 1), buckets: map[K]*Bucket{}}
}

// A KeyLimit is a Limit with the bucket of Key.
type KeyLimit[K comparable] struct {
	Scope     Scope
	Key       K
	PerMinute int
	Burst     int
}

// Take takes one token from the bucket of every limit, or none. There
// is at least one limit.
func (t *Table[K]) Take(now int64, keyed ...KeyLimit[K]) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	limits := make([]Limit, len(keyed))
	for i, limit := range keyed {
		limits[i] = t.bound(limit, now)
	}
	return Take(now, limits)
}

// Refund puts back the token of a request that belongs elsewhere.
func (t *Table[K]) Refund(now int64, limit KeyLimit[K]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	Refund(t.bound(limit, now))
}

// Spend is Bucket.Spend of the bucket of key.
func (t *Table[K]) Spend(now int64, key K, amount, perSecond int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bucket(key, now).Spend(now, amount, perSecond)
}

// Wait is Bucket.Wait of the bucket of key.
func (t *Table[K]) Wait(now int64, key K, capacity, perSecond int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.buckets[key]; found != nil {
		return found.Wait(now, capacity, perSecond)
	}
	return 0
}

// Len returns the number of buckets.
func (t *Table[K]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.buckets)
}

func (t *Table[K]) bound(limit KeyLimit[K], now int64) Limit {
	return Limit{Scope: limit.Scope, PerMinute: limit.PerMinute, Burst: limit.Burst, Bucket: t.bucket(limit.Key, now)}
}

func (t *Table[K]) bucket(key K, now int64) *Bucket {
	found := t.buckets[key]
	if found == nil {
		t.makeRoom(now)
		found = &Bucket{}
		t.buckets[key] = found
	}
	return found
}

// makeRoom drops full buckets, which equal new ones, and failing that
// any: new keys must not fill the memory. It sweeps once a second at
// most, so that a flood stays cheap.
func (t *Table[K]) makeRoom(now int64) {
	if len(t.buckets) < t.max {
		return
	}
	if now-t.swept >= sweepInterval {
		t.swept = now
		t.forgetFull(now)
	}
	for key := range t.buckets {
		if len(t.buckets) < t.max {
			return
		}
		delete(t.buckets, key)
	}
}

func (t *Table[K]) forgetFull(now int64) {
	for key, bucket := range t.buckets {
		if bucket.Full(now) {
			delete(t.buckets, key)
		}
	}
}
