package grouping

import (
	"hash/crc32"
	"math"
	"slices"

	"github.com/weirlog/weir/grouping/trace"
)

// Outline is what the similarity of two errors is
// computed from. It is made of a stored sample.
type Outline struct {
	kind  int32    // type of the root cause
	site  []int32  // the frames that locate it
	calls []int32  // all frames of all exceptions, the root cause first
	names []string // of calls, as they are compared
	words []int32  // of its message
}

// numberOf maps a name to a number. Those of calls are stored.
func numberOf(name []byte) int32 {
	return int32(crc32.ChecksumIEEE(name)) //nolint:gosec // any number will do
}

// OutlineOf outlines an error of the language.
func OutlineOf(language trace.Language, exceptions []trace.Exception) (o Outline) {
	if len(exceptions) == 0 {
		return o
	}
	var g Grouper
	t := &g.trace
	t.Load(language, exceptions, nil)
	root := t.Root().Unwrapped()
	o.kind = numberOf(language.AppendType(nil, root.Type))
	for i := range t.Frames() {
		if name := t.Identity(i); len(name) > 0 {
			o.calls, o.names = append(o.calls, numberOf(name)), append(o.names, trace.Cut(string(name), maxCulprit))
		}
	}
	for _, i := range t.Site() {
		o.site = append(o.site, numberOf(t.Identity(i)))
	}
	g.readMessage(&g.message, root, trace.MaxWords)
	for _, word := range g.message.Words() {
		if string(word) != trace.Value {
			o.words = append(o.words, numberOf(word))
		}
	}
	return o
}

// maxCalls is how many calls are stored with a group.
const maxCalls = 64

// Calls are at most 64 numbers of calls, the innermost of the
// root cause first. Errors that share none are not alike.
func (o Outline) Calls() []int32 { return o.calls[:min(len(o.calls), maxCalls)] }

// maxDifferences bounds the calls that Differences returns of each error.
const maxDifferences = 10

// Differences are the calls that only one
// of two errors has, the innermost first.
func (o Outline) Differences(p Outline) (only, other []string) { return o.without(p), p.without(o) }

func (o Outline) without(p Outline) (only []string) {
	left := make(map[int32]int, len(p.calls))
	for _, call := range p.calls {
		left[call]++
	}
	for i, call := range o.calls {
		if left[call]--; left[call] < 0 && len(only) < maxDifferences {
			only = append(only, o.names[i])
		}
	}
	return only
}

// Bounds of what is worth a look. Of what they show for errors with a known
// duplicate, four in ten are it; below that most are noise.
const (
	MaxSimilar    = 5
	MinSimilarity = 0.4
)

// Weights of a similarity's parts. They add up to 1.
const (
	weightCalls = 0.48
	weightSite  = 0.25
	weightType  = 0.15
	weightWords = 0.12
)

// Similarity is from 0 to 1. It combines the alignment of the frames, and
// of the innermost own ones, the type and the words of the message.
func (o Outline) Similarity(p Outline, r *Rarity) float64 {
	similarity := weightCalls*r.Query(o.calls).Alignment(p.calls) + weightSite*r.Query(o.site).Alignment(p.site) + weightWords*shared(o.words, p.words)
	if o.kind == p.kind {
		similarity += weightType
	}
	return similarity
}

// shared is the share of common words.
func shared(a, b []int32) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 0
	}
	both := 0
	for _, word := range a {
		for _, other := range b {
			if word == other {
				both++
				break
			}
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

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
	few    = 2000  // fewer errors than these show no share
)

func (r *Rarity) weight(call int32, place int) float64 {
	share := float64(r.holders[call]) / float64(max(r.errors, few))
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
