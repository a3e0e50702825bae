package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in steps of an eighth of a power of two.
type histogram struct{ counts [512]atomic.Int64 }

func (h *histogram) add(d time.Duration) {
	v := uint64(max(d, 8))
	shift := bits.Len64(v) - 4
	h.counts[shift*8+int(v>>shift)-8].Add(1)
}

// at returns an upper bound of a quantile.
func (h *histogram) at(q float64) time.Duration {
	var total, seen int64
	for i := range h.counts {
		total += h.counts[i].Load()
	}
	for i := range h.counts {
		if seen += h.counts[i].Load(); float64(seen) >= q*float64(total) {
			return (time.Duration(i%8+9) << (i / 8)).Round(time.Microsecond)
		}
	}
	return 0
}
