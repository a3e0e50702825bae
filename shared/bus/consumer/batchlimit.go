package consumer

import "time"

// Bounds of a batchLimit.
const (
	minScale   = 1.0 / 256
	firstScale = 1.0 / 8
)

// batchLimit is the part of the largest transaction that takes
// about its target time.
type batchLimit struct{ scale float64 }

// newBatchLimit begins low with lanes, until costs are measured; without them
// transactions are as large as they may be.
func newBatchLimit(lanes Lanes) *batchLimit {
	if lanes.Of == nil {
		return &batchLimit{1}
	}
	return &batchLimit{firstScale}
}

// limit is how much the next transaction may hold.
func (l *batchLimit) limit(most amount) amount {
	scaled := func(n int) int { return max(1, int(float64(n)*l.scale)) }
	return amount{scaled(most.records), scaled(most.cost), most.bytes}
}

// timing is how long a transaction took: its effect, and what is
// around every effect however small.
type timing struct{ effect, overhead time.Duration }

// minEffectRatio is how many times its overhead an effect may take in any case:
// where all is slow, smaller transactions only add overhead.
const minEffectRatio = 4

// learn adapts to a transaction: after one that took too long the next gets the
// size that would not have; after a full one that took less, a larger one. One
// bad measurement is soon recovered from.
func (l *batchLimit) learn(took timing, target time.Duration, held, limit, most amount) {
	target = max(target, minEffectRatio*took.overhead)
	part := max(float64(held.records)/float64(most.records), float64(held.cost)/float64(most.cost))
	switch {
	case took.effect > target:
		l.scale = max(minScale, min(l.scale, part*float64(target)/float64(took.effect)))
	case took.effect < target*3/4 && (2*held.records >= limit.records || 2*held.cost >= limit.cost):
		l.scale = min(1, l.scale*2)
	}
}
