package lanes

// Usage is what each lane had of the transactions lately, as parts of their
// limits. One transaction alone would show equals as floods: it holds what
// happened to come together, often of one partition and few lanes.
type Usage struct {
	lanes  map[string]float64 // bounded by leastUsage
	all    float64
	filled string // the lane of which one record alone was all of the last one; "": none
}

// Bounds of what is remembered of transactions.
const (
	usageKept  = 1 - 1.0/8  // of each, with every one that follows
	leastUsage = 1.0 / 1024 // of a lane that is remembered
	someUsage  = 2          // transactions: where it is less, shares are of so many
)

// NewUsage remembers nothing.
func NewUsage() *Usage { return &Usage{lanes: make(map[string]float64)} }

// Remember notes a transaction with records to apply.
func (u *Usage) Remember(g *Gathering) {
	u.add(g.shares.lanes, g.shares.limit)
	u.filled = g.shares.filling()
}

// add notes how much of a transaction each lane had.
func (u *Usage) add(lanes map[string]Amount, limit Amount) {
	u.all = 0
	for lane, had := range u.lanes {
		if had *= usageKept; had < leastUsage {
			delete(u.lanes, lane)
			continue
		}
		u.lanes[lane] = had
		u.all += had
	}
	for lane, has := range lanes {
		part := has.part(limit)
		u.lanes[lane] += part
		u.all += part
	}
}
