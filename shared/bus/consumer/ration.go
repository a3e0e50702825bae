package consumer

import (
	"math"
	"time"
)

// Limits of a lane's share of a transaction while the consumer is late.
const (
	largestShare = 4 // a quarter, however few lanes there are
	leastShare   = 8 // an eighth, however many: where more than that send alike, no one of them is what all wait for
	leastScale   = 1.0 / 256
	firstScale   = 1.0 / 8
)

// allot is an amount of work: records, what they cost, and the bytes that they take in memory.
type allot struct{ records, cost, bytes int }

func (a allot) plus(b allot) allot {
	return allot{a.records + b.records, a.cost + b.cost, a.bytes + b.bytes}
}

func (a allot) within(limit allot) bool {
	return a.records <= limit.records && a.cost <= limit.cost && a.bytes <= limit.bytes
}

// fills reports whether nothing more fits in beside a.
func (a allot) fills(limit allot) bool {
	return a.records >= limit.records || a.cost >= limit.cost || a.bytes >= limit.bytes
}

// divided is the share of one among n. Memory is not shared: it is free again after the transaction.
func (a allot) divided(n int) allot {
	return allot{max(1, a.records/n), max(1, a.cost/n), math.MaxInt}
}

// fate is what becomes of a record that is next in the log.
type fate int

const (
	applies fate = iota // it belongs to the transaction
	defers              // its lane comes to it later, by a position of its own
	waits               // the transaction is full, and the record the first of the next one
)

// ration decides which records a transaction holds: what one lane has of it, and what is left for the others.
type ration struct {
	limit  allot
	before int // lanes that had a part of the transaction before
	taken  allot
	lanes  map[string]allot
}

// situation is what is known of a record's lane and partition when it is decided about.
type situation struct {
	behind    bool // earlier records of the lane are deferred there: their order is kept
	elsewhere bool // they are in another partition: the lane has turns
	late      bool // the record has waited so long that lanes are held to their shares
	mayDefer  bool // there is room to remember where one more lane stands
}

// admit decides about one record. A lane is never refused its first record in a transaction, unless it is behind somewhere: a lane
// that sends little is never deferred. In a transaction that is full some lane has more than its share, which is reckoned for one lane more than
// there are, unless more lanes send alike than leastShare: so a few never keep a consumer late by what comes in order.
func (r *ration) admit(lane string, size allot, s situation) fate {
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
func (r *ration) share() allot {
	return r.limit.divided(min(leastShare, max(largestShare, r.before+1, len(r.lanes)+1)))
}

// pace is which part of the largest transaction takes about as long as a transaction should. It begins low: nobody knows yet how long the
// records take.
type pace struct{ scale float64 }

// newPace begins low with lanes; without them transactions are as large as they may be.
func newPace(lanes Lanes) *pace {
	if lanes.Of == nil {
		return &pace{1}
	}
	return &pace{firstScale}
}

// limit is how much the next transaction may hold.
func (p *pace) limit(most allot) allot {
	scaled := func(n int) int { return max(1, int(float64(n)*p.scale)) }
	return allot{scaled(most.records), scaled(most.cost), most.bytes}
}

// effort is how long a transaction took: its effect, and what is around every effect however small.
type effort struct{ effect, around time.Duration }

// leastEffect is how many times as long as what is around it an effect may take in any case: where all is slow, smaller transactions
// only add to it.
const leastEffect = 4

// learn draws the conclusion from a transaction: after one that took too long the next one is as large as would not have, after one that was
// full and took less it is larger. Who was only unlucky is back soon.
func (p *pace) learn(took effort, target time.Duration, held, limit, most allot) {
	target = max(target, leastEffect*took.around)
	part := max(float64(held.records)/float64(most.records), float64(held.cost)/float64(most.cost))
	switch {
	case took.effect > target:
		p.scale = max(leastScale, min(p.scale, part*float64(target)/float64(took.effect)))
	case took.effect < target*3/4 && (2*held.records >= limit.records || 2*held.cost >= limit.cost):
		p.scale = min(1, p.scale*2)
	}
}
