package lanes

// Limits of a lane's share of the transactions while the consumer is late.
const (
	minShares = 4 // a quarter, however few lanes there are
	maxShares = 8 // an eighth, however many: if more send alike, none of them delays all
)

// Amount is an amount of work: records, their cost, and their bytes in memory.
type Amount struct{ Records, Cost, Bytes int }

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Records + b.Records, a.Cost + b.Cost, a.Bytes + b.Bytes}
}

func (a Amount) within(limit Amount) bool {
	return a.Records <= limit.Records && a.Cost <= limit.Cost && a.Bytes <= limit.Bytes
}

// Fills reports whether nothing more fits in beside a.
func (a Amount) Fills(limit Amount) bool {
	return a.Records >= limit.Records || a.Cost >= limit.Cost || a.Bytes >= limit.Bytes
}

// part returns a's part of a limit. Memory does not count: the
// transaction frees it.
func (a Amount) part(limit Amount) float64 {
	return max(float64(a.Records)/float64(limit.Records), float64(a.Cost)/float64(limit.Cost))
}

// decision is what to do with the log's next record.
type decision int

const (
	applies decision = iota // in this transaction
	defers                  // later, by its lane's own position
	waits                   // the transaction is full; first in the next one
)

// shares decides by each lane's share which records a transaction holds.
type shares struct {
	limit  Amount
	most   Amount // of one lane in time; all, once something is late
	recent *Usage // by the transactions before
	taken  Amount
	lanes  map[string]Amount // bounded by the records of a transaction
}

// laneState is the state of a record's lane and partition when the
// record is admitted.
type laneState struct {
	behind    bool // earlier records of the lane are deferred there: order is kept
	elsewhere bool // they are in another partition: the lane has turns
	late      bool // the record has waited so long that shares apply
	mayDefer  bool // there is room for one more lane's position
}

// admit decides about one record. It always admits a lane's first
// record in a transaction, unless the lane is deferred somewhere, or
// one record of it filled the transaction before: so a lane that sends
// little is never deferred.
func (r *shares) admit(lane string, size Amount, s laneState) decision {
	has := r.lanes[lane]
	over := s.elsewhere || lane == r.recent.filled || has.Records > 0 && r.exceeds(lane, has.plus(size))
	switch {
	case s.behind:
		return defers
	case s.late && s.mayDefer && lane != "" && over:
		return defers
	case r.taken.Records > 0 && !(r.taken.plus(size).within(r.limit) && has.plus(size).within(r.most)):
		return waits
	}
	r.taken = r.taken.plus(size)
	r.lanes[lane] = has.plus(size)
	return applies
}

// exceeds reports whether a lane would exceed its share with so much of
// this transaction. The share is computed for one more lane than there
// are, unless more than maxShares send alike: so a few lanes cannot
// keep a consumer late.
func (r *shares) exceeds(lane string, has Amount) bool {
	all := max(someUsage, r.recent.all+r.taken.part(r.limit))
	n := min(maxShares, max(minShares, len(r.recent.lanes)+1, len(r.lanes)+1))
	return r.recent.lanes[lane]+has.part(r.limit) > all/float64(n)
}

// filling returns the lane of the one record that filled the transaction.
func (r *shares) filling() string {
	for lane, has := range r.lanes {
		if r.taken.Records == 1 && has.Records == 1 && has.Fills(r.limit) {
			return lane
		}
	}
	return ""
}
