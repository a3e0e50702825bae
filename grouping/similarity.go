package grouping

import (
	"math"
	"time"
)

// Weights of a similarity's parts. They add up to 1.
const (
	weightCalls = 0.42
	weightSite  = 0.22
	weightType  = 0.13
	weightWords = 0.10
	weightTime  = 0.13
)

// timeDecay is the distance at which time's weight falls to 1/e.
const timeDecay = 60 * 24 * time.Hour

// Similarity is from 0 to 1. It combines the alignment of the
// frames, and of the innermost own ones, the type and the
// words of the message. Errors that began at about the same
// time are more alike: one release may have broken both.
func (o Outline) Similarity(p Outline, apart time.Duration, r *Rarity) float64 {
	similarity := weightCalls*r.Query(o.calls).Alignment(p.calls) + weightSite*r.Query(o.site).Alignment(p.site) + weightWords*shared(o.words, p.words)
	if o.kind == p.kind {
		similarity += weightType
	}
	return similarity + weightTime*math.Exp(-float64(apart)/float64(timeDecay))
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
