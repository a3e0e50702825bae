package lanes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// flow is a log as the lanes of its records, and the transactions that
// a late consumer makes of it.
type flow struct {
	limit  Amount
	recent *Usage
	behind map[string]bool
}

func newFlow(limit Amount) *flow {
	return &flow{limit: limit, recent: NewUsage(), behind: map[string]bool{}}
}

// transact decides about records until the transaction is full. It
// returns what each lane got, and how far the log is read.
func (f *flow) transact(log []string, cost func(lane string) int) (got map[string]Amount, read int) {
	r := shares{limit: f.limit, most: f.limit, recent: f.recent, lanes: map[string]Amount{}}
	got = map[string]Amount{}
	defer func() { f.recent.add(r.lanes, f.limit) }()
	for _, lane := range log {
		size := Amount{1, cost(lane), cost(lane)}
		switch r.admit(lane, size, laneState{behind: f.behind[lane], late: true, mayDefer: true}) {
		case waits:
			f.recent.filled = r.filling()
			return got, read
		case defers:
			f.behind[lane] = true
		case applies:
			got[lane] = got[lane].plus(size)
		}
		read++
	}
	return got, read
}

// While the consumer is late, no transaction exceeds its limit unless one
// record does; no lane exceeds a quarter of the latest ones unless one
// record does; and a lane without a backlog gets its first record in.
func TestShares(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		lanes := 1 + random.IntN(12)
		costs := make(map[string]int, lanes)
		for i := range lanes {
			costs[fmt.Sprint(i)] = 1 + random.IntN(200)
		}
		cost := func(lane string) int { return costs[lane] }
		f := newFlow(Amount{4 + random.IntN(100), 100 + random.IntN(5000), 1 << 20})
		log := make([]string, 3000)
		for i := range log {
			log[i] = fmt.Sprint(min(random.IntN(lanes), random.IntN(lanes))) // the first lanes send most
		}
		for rest := log; len(rest) > 0; {
			before := Usage{lanes: maps.Clone(f.recent.lanes), all: f.recent.all}
			got, read := f.transact(rest, cost)
			var all Amount
			for _, has := range got {
				all = all.plus(has)
			}
			for lane, has := range got {
				if most := max(someUsage, before.all+all.part(f.limit)) / minShares; has.Records > 1 && before.lanes[lane]+has.part(f.limit) > most {
					t.Fatalf("seed %d: lane %s has %v of %v after %v, at most %v", seed, lane, has, f.limit, before.lanes[lane], most)
				}
			}
			if all.Records > 1 && !all.within(f.limit) || read == 0 {
				t.Fatalf("seed %d: transaction of %v, limit %v, %d read", seed, all, f.limit, read)
			}
			if first := rest[0]; !f.behind[first] && got[first].Records == 0 {
				t.Fatalf("seed %d: the first record of lane %s was refused", seed, first)
			}
			rest = rest[read:]
		}
	}
}

// A few lanes that send equally as much as they can are all deferred
// after a while, so that a quiet lane is reached. More of them are not:
// it would help nobody.
func TestEqualFloodsAreHeldBack(t *testing.T) {
	for _, floods := range []int{1, 2, 4, 5, 7} {
		f := newFlow(Amount{1000, 1 << 20, 1 << 20})
		transactions := 0
		for len(f.behind) < floods {
			log := make([]string, 2000)
			for i := range log {
				log[i] = fmt.Sprint(i % floods)
			}
			f.transact(log, func(string) int { return 100 })
			if transactions++; transactions > floods {
				t.Fatalf("%d floods: %d are held back after %d transactions", floods, len(f.behind), transactions)
			}
		}
	}
}

func TestManyEqualLanesAreNotHeldBack(t *testing.T) {
	for _, lanes := range []int{maxShares + 1, 20, 50} {
		f := newFlow(Amount{1000, 1 << 20, 1 << 20})
		log := make([]string, 2000)
		for i := range log {
			log[i] = fmt.Sprint(i % lanes)
		}
		for range 10 {
			f.transact(log, func(string) int { return 100 })
		}
		if len(f.behind) > 0 {
			t.Errorf("%d of %d equal lanes are held back", len(f.behind), lanes)
		}
	}
}

// Nor if single transactions hold only a few of the lanes, as records
// come partition by partition: each lane's recent usage counts.
func TestManyEqualLanesInFewPartitionsAreNotHeldBack(t *testing.T) {
	for _, c := range []struct{ lanes, partitions, run, limit int }{{24, 12, 10, 100}, {24, 12, 10, 30}, {24, 12, 40, 150}, {100, 12, 100, 250}, {1000, 50, 40, 1000}} {
		f := newFlow(Amount{c.limit, 1 << 20, 1 << 20})
		var log []string
		for run := range 1000 {
			for i := range c.run {
				log = append(log, fmt.Sprint(run%c.partitions+c.partitions*(i%(c.lanes/c.partitions))))
			}
		}
		for range 200 {
			_, read := f.transact(log, func(string) int { return 100 })
			log = log[read:]
		}
		if len(f.behind) > 0 {
			t.Errorf("%+v: %d are held back", c, len(f.behind))
		}
	}
}

// There are no shares while the consumer is in time, without lanes, or
// without room for another lane.
func TestNoShares(t *testing.T) {
	for name, c := range map[string]struct {
		lane string
		s    laneState
	}{"not late": {"a", laneState{mayDefer: true}}, "no lane": {"", laneState{late: true, mayDefer: true}}, "no room": {"a", laneState{late: true}}} {
		r, n := shares{limit: Amount{100, 1000, 1000}, most: Amount{100, 1000, 1000}, recent: NewUsage(), lanes: map[string]Amount{}}, 0
		for r.admit(c.lane, Amount{1, 1, 1}, c.s) == applies {
			n++
		}
		if n != 100 {
			t.Errorf("%s: %d records, want 100", name, n)
		}
	}
}

// Records that each take more than a transaction should defer their
// lane at the second one: what follows a hundred of them waits for one.
func TestSharesOfRecordsLargerThanTransactions(t *testing.T) {
	log := strings.Split(strings.Repeat("noisy ", 100)+"quiet quiet", " ")
	cost := func(lane string) int { return map[string]int{"noisy": 1000, "quiet": 1}[lane] }
	f := newFlow(Amount{100, 100, 1 << 20})
	for transaction := 1; len(log) > 0; transaction++ {
		got, read := f.transact(log, cost)
		if got["quiet"].Records > 0 {
			if transaction > 2 {
				t.Errorf("the quiet lane waits for %d transactions", transaction-1)
			}
			return
		}
		log = log[read:]
	}
	t.Error("the quiet lane gets nothing")
}
