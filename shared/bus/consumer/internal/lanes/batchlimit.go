package lanes

import "time"

// Bounds of a BatchLimit.
const (
	minScale   = 1.0 / 256
	firstScale = 1.0 / 8
)

// BatchLimit is the part of the largest transaction that takes about
// the target time.
type BatchLimit struct{ scale float64 }

// NewBatchLimit begins low with lanes, until costs are measured;
// without lanes transactions have full size.
func NewBatchLimit(lanes Config) *BatchLimit {
	if lanes.Of == nil {
		return &BatchLimit{1}
	}
	return &BatchLimit{firstScale}
}

// Limit returns how much the next transaction may hold.
func (l *BatchLimit) Limit(most Amount) Amount {
	scaled := func(n int) int { return max(1, int(float64(n)*l.scale)) }
	return Amount{scaled(most.Records), scaled(most.Cost), most.Bytes}
}

// Timing is how long a transaction took: for its effect, and for all around it.
type Timing struct{ Effect, Overhead time.Duration }

// minEffectRatio is how many times the overhead an effect may always
// take: on a slow machine smaller transactions only add overhead.
const minEffectRatio = 4

// Learn adapts to a transaction: after a slow one, the next gets the
// size that would have met the target; after a quick full one, a larger
// size. It recovers soon from a bad measurement.
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
