package lanes

// Limits of a lane's share of the transactions while the consumer is late.
const (
	minShares = 4 // a quarter, however few lanes there are
	maxShares = 8 // an eighth, however many: where more than that send alike, no one of them is what all wait for
)

// Amount is an amount of work: records, what they cost, and the
// bytes that they take in memory.
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

// part is how much of a limit a is. Memory is not shared: it is
// free again after the transaction.
func (a Amount) part(limit Amount) float64 {
	return max(float64(a.Records)/float64(limit.Records), float64(a.Cost)/float64(limit.Cost))
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
	limit  Amount
	most   Amount // that one lane may have of it in time; all, once something is late
	lately *Usage // of the transactions before
	taken  Amount
	lanes  map[string]Amount // bounded by the records of a transaction
}

// laneState is the state of a record's lane and partition when it is admitted.
type laneState struct {
	behind    bool // earlier records of the lane are deferred there: their order is kept
	elsewhere bool // they are in another partition: the lane has turns
	late      bool // the record has waited so long that lanes are held to their shares
	mayDefer  bool // there is room to remember where one more lane stands
}

// admit decides about one record. A lane's first record in a transaction is
// always admitted, unless the lane is behind somewhere, or one record of it
// filled the transaction before: a lane that sends little is never deferred.
func (r *shares) admit(lane string, size Amount, s laneState) decision {
	has := r.lanes[lane]
	over := s.elsewhere || lane == r.lately.filled || has.Records > 0 && r.exceeds(lane, has.plus(size))
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
// this transaction. The share is computed for one lane more than there
// are, unless more than maxShares send alike: so a few never keep a
// consumer late with what comes in order.
func (r *shares) exceeds(lane string, has Amount) bool {
	all := max(someUsage, r.lately.all+r.taken.part(r.limit))
	n := min(maxShares, max(minShares, len(r.lately.lanes)+1, len(r.lanes)+1))
	return r.lately.lanes[lane]+has.part(r.limit) > all/float64(n)
}

// filling is the lane of which one record filled the transaction.
func (r *shares) filling() string {
	for lane, has := range r.lanes {
		if r.taken.Records == 1 && has.Records == 1 && has.Fills(r.limit) {
			return lane
		}
	}
	return ""
}
