package fairshare

import (
	"container/list"
	"time"
)

// makeRoom evicts leases until enough comes back for a claim; none if that
// would not suffice.
func (l *Limiter) makeRoom(c *claim) {
	deadlocked := l.leases == l.queued // nothing will come back: all wait for each other
	if l.evictable == 0 && !deadlocked {
		return
	}
	missing := l.held + c.units - l.limits.Capacity
	for _, of := range l.holders {
		missing -= of.leaving()
	}
	var victims []*Lease
	for missing > 0 {
		victim := l.victim(c, deadlocked)
		if victim == nil {
			break
		}
		victim.chosen = true
		victims = append(victims, victim)
		missing -= victim.units
	}
	for _, victim := range victims {
		if victim.chosen = missing <= 0; victim.chosen {
			l.evict(victim)
		}
	}
	if missing > 0 && deadlocked {
		l.decide(l.youngest(), ErrFull)
	}
}

func (l *Limiter) evict(victim *Lease) {
	l.evictions++
	victim.evicted.Store(true)
	if victim.claim != nil {
		l.decide(victim.claim, ErrEvicted)
		return
	}
	victim.stop()
}

// victim is the slowest evictable lease of the largest key with one that
// holds more than the claim's key would. With a Share, what the claim asks
// for does not count: a key that holds nothing is served.
func (l *Limiter) victim(c *claim, deadlocked bool) (slowest *Lease) {
	most, now := c.lease.of.held+c.units, l.limits.now()
	if l.limits.Share > 0 {
		most = c.lease.of.held
	}
	for _, of := range l.holders {
		left := of.held - of.leaving()
		if of == c.lease.of || left <= most {
			continue
		}
		if s := of.slowest(now, l.limits.Grace, deadlocked); s != nil {
			slowest, most = s, left
		}
	}
	return slowest
}

// slowest is a key's slowest evictable lease, of many the oldest. In a
// deadlock none has grace.
func (of *holder) slowest(now time.Time, grace time.Duration, deadlocked bool) (slowest *Lease) {
	for _, s := range of.leases {
		if s.stop == nil || s.chosen || !deadlocked && now.Sub(s.began) < grace {
			continue
		}
		if slowest == nil || s.speed(now) < slowest.speed(now) || s.speed(now) == slowest.speed(now) && s.number < slowest.number {
			slowest = s
		}
	}
	return slowest
}

// leaving is what evicted leases still hold.
func (of *holder) leaving() (units int64) {
	for _, s := range of.leases {
		if s.chosen {
			units += s.units
		}
	}
	return units
}

// deadlocked reports whether all leases of a key wait for each other.
func (of *holder) deadlocked() bool { return len(of.claims) == len(of.leases) }

// youngest is the claim of the youngest lease that waits.
func (l *Limiter) youngest() (youngest *claim) {
	for _, of := range l.turns {
		if c := of.youngest(); youngest == nil || c.lease.number > youngest.lease.number {
			youngest = c
		}
	}
	return youngest
}

func (of *holder) youngest() (youngest *claim) {
	for _, c := range of.claims {
		if youngest == nil || c.lease.number > youngest.lease.number {
			youngest = c
		}
	}
	return youngest
}

// A Ranking finds the holder with the highest count, and among equals the
// one that has had it longest. A change by one costs the same with any
// number of holders. It is not safe for concurrent use.
type Ranking[H comparable] struct {
	byCount map[int]*list.List
	places  map[H]place // bounded by the holders that have any
	most    int
}

type place struct {
	count   int
	element *list.Element
}

// NewRanking returns a ranking in which all have 0.
func NewRanking[H comparable]() *Ranking[H] {
	return &Ranking[H]{byCount: map[int]*list.List{}, places: map[H]place{}}
}

// Set sets a holder's count.
func (r *Ranking[H]) Set(holder H, count int) {
	old, ranked := r.places[holder]
	if ranked && old.count == count || !ranked && count == 0 {
		return
	}
	if ranked {
		r.take(holder, old)
	}
	if count > 0 {
		r.put(holder, count)
	}
	for r.most > 0 && r.byCount[r.most] == nil {
		r.most--
	}
}

func (r *Ranking[H]) take(holder H, old place) {
	delete(r.places, holder)
	same := r.byCount[old.count]
	if same.Remove(old.element); same.Len() == 0 {
		delete(r.byCount, old.count)
	}
}

func (r *Ranking[H]) put(holder H, count int) {
	same := r.byCount[count]
	if same == nil {
		same = list.New()
		r.byCount[count] = same
	}
	r.places[holder] = place{count, same.PushBack(holder)}
	r.most = max(r.most, count)
}

// First returns the holder with the highest count, the zero value if all
// are 0.
func (r *Ranking[H]) First() (holder H) {
	if r.most > 0 {
		holder = r.byCount[r.most].Front().Value.(H)
	}
	return holder
}
