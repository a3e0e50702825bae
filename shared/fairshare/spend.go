package fairshare

import "time"

// Spend takes amount, not negative, from a bucket that gains perSecond,
// at least 1, even if it holds less: past use can't be refused, but
// what follows can wait.
func (b *Bucket) Spend(now, amount, perSecond int64) {
	b.full = max(b.full, now) + int64(float64(amount)/float64(perSecond)*float64(time.Second))
}

// Wait returns the time until a bucket of the given capacity, which
// gains perSecond, holds anything; 0 if it does.
func (b *Bucket) Wait(now, capacity, perSecond int64) time.Duration {
	filled := int64(float64(capacity) / float64(perSecond) * float64(time.Second))
	return time.Duration(max(0, b.full-now-filled))
}

// Allow spends a token of a bucket of the given capacity, if it has one.
func (b *Bucket) Allow(now, capacity, perSecond int64) bool {
	if b.Wait(now, capacity, perSecond) > 0 {
		return false
	}
	b.Spend(now, 1, perSecond)
	return true
}
