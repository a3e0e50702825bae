package connections

import "container/list"

// A ranking finds the network with the highest count, and among equals
// the one that has had it longest. A change by one costs the same with
// any number of networks: clients can make as many as they like.
type ranking struct {
	byCount map[int]*list.List
	places  map[*network]place // bounded by the networks that have any
	most    int
}

type place struct {
	count   int
	element *list.Element
}

func newRanking() *ranking {
	return &ranking{byCount: map[int]*list.List{}, places: map[*network]place{}}
}

// set sets the count of n.
func (r *ranking) set(n *network, count int) {
	old, ranked := r.places[n]
	if ranked && old.count == count || !ranked && count == 0 {
		return
	}
	if ranked {
		r.take(n, old)
	}
	if count > 0 {
		r.put(n, count)
	}
	for r.most > 0 && r.byCount[r.most] == nil {
		r.most--
	}
}

func (r *ranking) take(n *network, old place) {
	delete(r.places, n)
	same := r.byCount[old.count]
	if same.Remove(old.element); same.Len() == 0 {
		delete(r.byCount, old.count)
	}
}

func (r *ranking) put(n *network, count int) {
	same := r.byCount[count]
	if same == nil {
		same = list.New()
		r.byCount[count] = same
	}
	r.places[n] = place{count, same.PushBack(n)}
	r.most = max(r.most, count)
}

// first returns the network with the highest count, nil if all are 0.
func (r *ranking) first() *network {
	if r.most == 0 {
		return nil
	}
	return r.byCount[r.most].Front().Value.(*network)
}
