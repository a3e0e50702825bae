package grouping

import (
	"hash/maphash"
	"math"
	"time"
)

// Outline is what the likeness of two errors is computed from.
// It is made of a stored sample.
type Outline struct {
	kind  uint64   // type of the root cause
	site  []uint64 // the frames that locate it
	calls []uint64 // all frames of all exceptions, the root cause first
	names []string // of calls, as they are compared
	words []uint64 // of its message
}

// seed makes numbers of names, which are compared within one process only.
var seed = maphash.MakeSeed()

// OutlineOf outlines an error of the language.
func OutlineOf(language Language, exceptions []Exception) (o Outline) {
	if len(exceptions) == 0 {
		return o
	}
	g := Grouper{trace: trace{syntax: syntaxOf(language), skip: -1}}
	t := &g.trace
	for _, e := range exceptions {
		s := span{e.Type, e.Message, len(t.frames), len(t.frames) + len(e.Frames)}
		t.frames, t.spans = append(t.frames, e.Frames...), append(t.spans, s)
	}
	t.name()
	t.locate()
	root := unwrapped(g.rootCause())
	o.kind = maphash.Bytes(seed, g.appendTypeName(nil, root.typ))
	for i := range t.frames {
		if name := t.identity(i); len(name) > 0 {
			o.calls, o.names = append(o.calls, maphash.Bytes(seed, name)), append(o.names, Cut(string(name), maxCulprit))
		}
	}
	for _, i := range t.site {
		o.site = append(o.site, maphash.Bytes(seed, t.identity(i)))
	}
	g.words.read(root.message)
	for _, one := range g.words.words {
		o.words = append(o.words, maphash.Bytes(seed, g.words.text[one.start:one.end]))
	}
	return o
}

// Names are those of the frames: errors that share none are not alike.
func (o Outline) Names() []uint64 { return o.calls }

// maxDifferences is how many calls are named in which two errors differ.
const maxDifferences = 10

// Differences are the calls that only one of two errors has, the innermost first.
func (o Outline) Differences(p Outline) (only, other []string) { return o.without(p), p.without(o) }

func (o Outline) without(p Outline) (only []string) {
	left := make(map[uint64]int, len(p.calls))
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

// What the parts of a likeness weigh.
const (
	likeCalls = 0.42
	likeSite  = 0.22
	likeType  = 0.13
	likeWords = 0.10
	likeTime  = 0.13
)

// together is how far apart in time errors are that hardly have the same cause.
const together = 60 * 24 * time.Hour

// Likeness is from 0 to 1. It combines the alignment of the
// frames, of the innermost own ones among them, the type, the
// words of the message, and how long one was seen before the
// other: what broke with one release comes together.
func (o Outline) Likeness(p Outline, apart time.Duration) float64 {
	likeness := likeCalls*alignment(o.calls, p.calls) + likeSite*alignment(o.site, p.site) + likeWords*shared(o.words, p.words)
	if o.kind == p.kind {
		likeness += likeType
	}
	return likeness + likeTime*math.Exp(-float64(apart)/float64(together))
}

// Of the frames of a trace the innermost count most.
const (
	decay = 0.6  // power by which the weight of a place falls
	drift = 0.05 // by how much less a pair weighs for each place that it is apart
)

func weight(place int) float64 { return math.Pow(float64(place+1), -decay) }

// alignment pairs equal frames in order, the nth of a name with
// the nth, in linear time.
func alignment(a, b []uint64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	total := 0.0
	places := make(map[uint64][]int, len(b))
	for i, name := range b {
		places[name] = append(places[name], i)
		total += weight(i)
	}
	paired := 0.0
	for i, name := range a {
		total += weight(i)
		if at := places[name]; len(at) > 0 {
			paired += (weight(i) + weight(at[0])) * math.Exp(-drift*math.Abs(float64(i-at[0])))
			places[name] = at[1:]
		}
	}
	return paired / total
}

// shared is the share of common words.
func shared(a, b []uint64) float64 {
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
