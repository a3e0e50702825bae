package measure

import (
	"slices"
	"sync"
	"time"
)

// Samples are durations that were measured. Safe for concurrent use.
type Samples struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *Samples) Add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

// Percentiles returns the p-th percentiles by the nearest-rank method; zeros where nothing was
// measured.
func (s *Samples) Percentiles(ps ...float64) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.all)
	found := make([]time.Duration, len(ps))
	for i, p := range ps {
		if n := len(s.all); n > 0 {
			found[i] = s.all[min(n-1, max(0, int(p/100*float64(n)+0.9999999)-1))]
		}
	}
	return found
}

func (s *Samples) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
