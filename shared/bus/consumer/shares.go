package consumer

import (
	"math"
	"time"
)

// Limits of a lane's share of a transaction while the consumer is late.
const (
	minShares  = 4 // a quarter, however few lanes there are
	maxShares  = 8 // an eighth, however many: where more than that send alike, no one of them is what all wait for
	minScale   = 1.0 / 256
	firstScale = 1.0 / 8
)

// amount is an amount of work: records, what they cost, and the bytes that they take in memory.
type amount struct{ records, cost, bytes int }

func (a amount) plus(b amount) amount {
	return amount{a.records + b.records, a.cost + b.cost, a.bytes + b.bytes}
}

func (a amount) within(limit amount) bool {
	return a.records <= limit.records && a.cost <= limit.cost && a.bytes <= limit.bytes
}

// fills reports whether nothing more fits in beside a.
func (a amount) fills(limit amount) bool {
	return a.records >= limit.records || a.cost >= limit.cost || a.bytes >= limit.bytes
}

// divided is the share of one among n. Memory is not shared: it is free again after the transaction.
func (a amount) divided(n int) amount {
	return amount{max(1, a.records/n), max(1, a.cost/n), math.MaxInt}
}

// decision is what becomes of a record that is next in the log.
type decision int

const (
	applies decision = iota // it belongs to the transaction
	defers                  // its lane comes to it later, by a position of its own
	waits                   // the transaction is full, and the record the first of the next one
)

// shares decides which records a transaction holds: what one lane has of it, and what is left for the others.
type shares struct {
	limit  amount
	before int // lanes that had a part of the transaction before
	taken  amount
	lanes  map[string]amount
}

// laneState is what is known of a record's lane and partition when it is decided about.
type laneState struct {
	behind    bool // earlier records of the lane are deferred there: their order is kept
	elsewhere bool // they are in another partition: the lane has turns
	late      bool // the record has waited so long that lanes are held to their shares
	mayDefer  bool // there is room to remember where one more lane stands
}

// admit decides about one record. A lane is never refused its first record in a transaction, unless it is behind somewhere: a lane
// that sends little is never deferred. In a transaction that is full some lane has more than its share, which is reckoned for one lane more than
// there are, unless more lanes send alike than maxShares: so a few never keep a consumer late by what comes in order.
func (r *shares) admit(lane string, size amount, s laneState) decision {
	has := r.lanes[lane]
	over := s.elsewhere || has.records > 0 && !has.plus(size).within(r.share())
	switch {
	case s.behind:
		return defers
	case s.late && s.mayDefer && lane != "" && over:
		return defers
	case r.taken.records > 0 && !r.taken.plus(size).within(r.limit):
		return waits
	}
	r.taken = r.taken.plus(size)
	if s.late && lane != "" {
		r.lanes[lane] = has.plus(size)
	}
	return applies
}

// share is what one lane may have.
func (r *shares) share() amount {
	return r.limit.divided(min(maxShares, max(minShares, r.before+1, len(r.lanes)+1)))
}

// batchLimit is which part of the largest transaction takes about as long as a transaction should. It begins low: nobody knows yet how long the
// records take.
type batchLimit struct{ scale float64 }

// newBatchLimit begins low with lanes; without them transactions are as large as they may be.
func newBatchLimit(lanes Lanes) *batchLimit {
	if lanes.Of == nil {
		return &batchLimit{1}
	}
	return &batchLimit{firstScale}
}

// limit is how much the next transaction may hold.
func (p *batchLimit) limit(most amount) amount {
	scaled := func(n int) int { return max(1, int(float64(n)*p.scale)) }
	return amount{scaled(most.records), scaled(most.cost), most.bytes}
}

// timing is how long a transaction took: its effect, and what is around every effect however small.
type timing struct{ effect, overhead time.Duration }

// minEffectRatio is how many times as long as what is around it an effect may take in any case: where all is slow, smaller transactions
// only add to it.
const minEffectRatio = 4

// learn draws the conclusion from a transaction: after one that took too long the next one is as large as would not have, after one that was
// full and took less it is larger. Who was only unlucky is back soon.
func (p *batchLimit) learn(took timing, target time.Duration, held, limit, most amount) {
	target = max(target, minEffectRatio*took.overhead)
	part := max(float64(held.records)/float64(most.records), float64(held.cost)/float64(most.cost))
	switch {
	case took.effect > target:
		p.scale = max(minScale, min(p.scale, part*float64(target)/float64(took.effect)))
	case took.effect < target*3/4 && (2*held.records >= limit.records || 2*held.cost >= limit.cost):
		p.scale = min(1, p.scale*2)
	}
}
