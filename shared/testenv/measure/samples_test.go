package measure

import (
	"testing"
	"time"
)

// The ranks around the 99th percentile are those of the binomial
// distribution; too few samples leave the interval open above.
func TestInterval(t *testing.T) {
	for n, want := range map[int][2]time.Duration{
		0: {0, Unbounded}, 1: {1, Unbounded}, 30: {29, Unbounded}, 298: {292, Unbounded}, 299: {293, 299}, 360: {353, 360}, 1000: {985, 996},
	} {
		samples := &Samples{}
		for i := range n {
			samples.Add(time.Duration(n - i))
		}
		if low, high := samples.Interval(99); [2]time.Duration{low, high} != want {
			t.Errorf("the 99th percentile of %d samples is between %d and %d, want %d", n, low, high, want)
		}
	}
}
