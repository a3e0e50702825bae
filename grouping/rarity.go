package grouping

import (
	"math"
	"slices"
)

// Rarity is in how few of a project's errors each
// call is: a call that all share makes no two alike.
type Rarity struct {
	holders map[int32]int32 // errors by call
	errors  int
}

// RarityAmong counts the calls of errors, as returned by Outline.Calls.
func RarityAmong(errors [][]int32) *Rarity {
	most := 0
	for _, calls := range errors {
		most += len(calls)
	}
	r := &Rarity{holders: make(map[int32]int32, most), errors: len(errors)}
	for _, calls := range errors {
		for i, call := range calls {
			if !slices.Contains(calls[:i], call) {
				r.holders[call]++
			}
		}
	}
	return r
}

// Weights of calls, after the method FaST:
// the innermost and the rarest weigh most.
const (
	decay  = 0.2   // power by which the weight of a place falls
	drift  = 0.02  // by how much less a pair weighs for each place it is apart
	common = 0.002 // share of errors with a call by which its weight falls to 1/e
	unseen = 100   // added errors without the call: few errors show no share
)

func (r *Rarity) weight(call int32, place int) float64 {
	share := float64(r.holders[call]) / float64(r.errors+unseen)
	return math.Pow(float64(place+1), -decay) * math.Exp(-share/common)
}

// A Query compares one trace with others, one
// after another. It is for one goroutine.
type Query struct {
	rarity  *Rarity
	weights []float64     // by place
	total   float64       // of weights
	numbers map[int32]int // by call, from 0 on
	first   []int         // place by number
	next    []int         // by place, that of the next equal call; -1: there is none
	left    []int         // place by number that is paired next, within a comparison
}

// Query prepares a trace.
func (r *Rarity) Query(calls []int32) *Query {
	q := &Query{rarity: r, weights: make([]float64, len(calls)), next: make([]int, len(calls)), numbers: make(map[int32]int, len(calls))}
	for i, call := range slices.Backward(calls) {
		q.weights[i], q.next[i] = r.weight(call, i), -1
		q.total += q.weights[i]
		if n, again := q.numbers[call]; again {
			q.next[i], q.first[n] = q.first[n], i
			continue
		}
		q.numbers[call] = len(q.first)
		q.first = append(q.first, i)
	}
	q.left = make([]int, len(q.first))
	return q
}

// Alignment is from 0 to 1: the share of two traces, by
// weight, that is alike. It pairs equal calls in order,
// the nth of a name with the nth, in linear time.
func (q *Query) Alignment(calls []int32) float64 {
	if len(q.weights) == 0 || len(calls) == 0 {
		return 0
	}
	copy(q.left, q.first)
	total, paired := q.total, 0.0
	for i, call := range calls {
		weight := q.rarity.weight(call, i)
		total += weight
		if n, ok := q.numbers[call]; ok && q.left[n] >= 0 {
			at := q.left[n]
			paired += (weight + q.weights[at]) * math.Exp(-drift*math.Abs(float64(i-at)))
			q.left[n] = q.next[at]
		}
	}
	return paired / total
}
