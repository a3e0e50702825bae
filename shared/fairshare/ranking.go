package fairshare

import "container/list"

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
