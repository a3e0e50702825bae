package consumer

import (
	"math"
)

// Limits of a lane's share of a transaction while the consumer is late.
const (
	minShares = 4 // a quarter, however few lanes there are
	maxShares = 8 // an eighth, however many: where more than that send alike, no one of them is what all wait for
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

// divided is the share of one among n. Memory is not shared: it is free again after the
// transaction.
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

// shares decides which records a transaction holds, by each lane's share.
type shares struct {
	limit  amount
	before int    // lanes that had a part of the transaction before
	filled string // the lane of which one record alone was all of it; "": none
	taken  amount
	lanes  map[string]amount
}

// laneState is the state of a record's lane and partition when it is admitted.
type laneState struct {
	behind    bool // earlier records of the lane are deferred there: their order is kept
	elsewhere bool // they are in another partition: the lane has turns
	late      bool // the record has waited so long that lanes are held to their shares
	mayDefer  bool // there is room to remember where one more lane stands
}

// admit decides about one record. A lane's first record in a transaction is always admitted, unless
// the lane is behind somewhere, or one record of it was all of the transaction before: a lane that
// sends little is never deferred. In a full transaction
// some lane exceeds its share, which is computed for one lane more than there are, unless more than
// maxShares send alike: so a few never keep a consumer late with what comes in order.
func (r *shares) admit(lane string, size amount, s laneState) decision {
	has := r.lanes[lane]
	over := s.elsewhere || lane == r.filled || has.records > 0 && !has.plus(size).within(r.share())
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

// filling is the lane of which one record alone was the transaction, which holds no more.
func (r *shares) filling() string {
	for lane, has := range r.lanes {
		if r.taken.records == 1 && has.records == 1 && has.fills(r.limit) {
			return lane
		}
	}
	return ""
}

// share is what one lane may have.
func (r *shares) share() amount {
	return r.limit.divided(min(maxShares, max(minShares, r.before+1, len(r.lanes)+1)))
}
