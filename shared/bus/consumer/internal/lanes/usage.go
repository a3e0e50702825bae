package lanes

// Usage is each lane's recent part of transactions' limits. One
// transaction alone would show equal lanes as floods: it holds whatever
// came together, often of one partition and few lanes.
type Usage struct {
	lanes  map[string]float64 // bounded by minUsage
	all    float64
	filled string // the lane whose one record was all of the last one; "": none
}

// Weights of past transactions.
const (
	usageKept = 1 - 1.0/8  // of each, with every later one
	minUsage  = 1.0 / 1024 // of a lane that is kept
	someUsage = 2          // transactions: below it, parts are of so many
)

// NewUsage returns an empty usage.
func NewUsage() *Usage { return &Usage{lanes: make(map[string]float64)} }

// Remember adds a transaction with records to apply.
func (u *Usage) Remember(g *Gathering) {
	u.add(g.shares.lanes, g.shares.limit)
	u.filled = g.shares.filling()
}

// add adds each lane's part of a transaction.
func (u *Usage) add(lanes map[string]Amount, limit Amount) {
	u.all = 0
	for lane, had := range u.lanes {
		if had *= usageKept; had < minUsage {
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
