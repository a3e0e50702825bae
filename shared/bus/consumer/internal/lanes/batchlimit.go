package lanes

import "time"

// Bounds of a batchLimit.
const (
	minScale   = 1.0 / 256
	firstScale = 1.0 / 8
)

// BatchLimit is the part of the largest transaction that takes
// about its target time.
type BatchLimit struct{ scale float64 }

// NewBatchLimit begins low with lanes, until costs are measured; without them
// transactions are as large as they may be.
func NewBatchLimit(lanes Config) *BatchLimit {
	if lanes.Of == nil {
		return &BatchLimit{1}
	}
	return &BatchLimit{firstScale}
}

// Limit is how much the next transaction may hold.
func (l *BatchLimit) Limit(most Amount) Amount {
	scaled := func(n int) int { return max(1, int(float64(n)*l.scale)) }
	return Amount{scaled(most.Records), scaled(most.Cost), most.Bytes}
}

// Timing is how long a transaction took: its effect, and what is
// around every effect however small.
type Timing struct{ Effect, Overhead time.Duration }

// minEffectRatio is how many times its overhead an effect may take in any case:
// where all is slow, smaller transactions only add overhead.
const minEffectRatio = 4

// Learn adapts to a transaction: after one that took too long the next gets the
// size that would not have; after a full one that took less, a larger one. One
// bad measurement is soon recovered from.
func (l *BatchLimit) Learn(took Timing, target time.Duration, held, limit, most Amount) {
	target = max(target, minEffectRatio*took.Overhead)
	part := max(float64(held.Records)/float64(most.Records), float64(held.Cost)/float64(most.Cost))
	switch {
	case took.Effect > target:
		l.scale = max(minScale, min(l.scale, part*float64(target)/float64(took.Effect)))
	case took.Effect < target*3/4 && (2*held.Records >= limit.Records || 2*held.Cost >= limit.Cost):
		l.scale = min(1, l.scale*2)
	}
}
