package grouping

import "math"

// Rarity is in how few errors of a project each call is: what all
// have in common makes no two alike.
type Rarity struct {
	holders map[int32]int // by call
	errors  int
}

// RarityAmong counts the calls of errors, as Outline.Calls has them.
func RarityAmong(errors [][]int32) *Rarity {
	r := &Rarity{holders: map[int32]int{}, errors: len(errors)}
	last := map[int32]int{} // the error that was counted last, from 1
	for i, calls := range errors {
		for _, call := range calls {
			if last[call] != i+1 {
				last[call] = i + 1
				r.holders[call]++
			}
		}
	}
	return r
}

// How much calls count, after the method FaST: the innermost and
// the rarest most.
const (
	decay  = 0.2   // power by which the weight of a place falls
	drift  = 0.02  // by how much less a pair weighs for each place that it is apart
	common = 0.002 // share of errors with a call by which its weight falls to 1/e
	unseen = 100   // errors without the call that are added: of a few errors no share is known
)

func (r *Rarity) weight(call int32, place int) float64 {
	share := float64(r.holders[call]) / float64(r.errors+unseen)
	return math.Pow(float64(place+1), -decay) * math.Exp(-share/common)
}

// Alignment is from 0 to 1: which part of two traces, by weight, is
// alike. It pairs equal calls in order, the nth of a name with
// the nth, in linear time.
func (r *Rarity) Alignment(a, b []int32) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	total := 0.0
	places := make(map[int32][]int, len(b))
	for i, call := range b {
		places[call] = append(places[call], i)
		total += r.weight(call, i)
	}
	paired := 0.0
	for i, call := range a {
		total += r.weight(call, i)
		if at := places[call]; len(at) > 0 {
			paired += (r.weight(call, i) + r.weight(call, at[0])) * math.Exp(-drift*math.Abs(float64(i-at[0])))
			places[call] = at[1:]
		}
	}
	return paired / total
}
