package grouping

import (
	"math"
	"time"
)

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
func (o Outline) Likeness(p Outline, apart time.Duration, r *Rarity) float64 {
	likeness := likeCalls*r.Query(o.calls).Alignment(p.calls) + likeSite*r.Query(o.site).Alignment(p.site) + likeWords*shared(o.words, p.words)
	if o.kind == p.kind {
		likeness += likeType
	}
	return likeness + likeTime*math.Exp(-float64(apart)/float64(together))
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
