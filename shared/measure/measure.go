package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Samples are measured durations. Safe for concurrent use.
type Samples struct {
	mu  sync.Mutex
	all []time.Duration
}

// Time adds how long do takes, unless it fails.
func (s *Samples) Time(do func() error) error {
	begun := time.Now()
	err := do()
	if err == nil {
		s.Add(time.Since(begun))
	}
	return err
}

// Add adds a duration.
func (s *Samples) Add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

// Percentiles returns the p-th percentiles by the nearest-rank method;
// zeros without samples.
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

// Unbounded is the upper end of an interval that too few samples leave open.
const Unbounded = time.Duration(math.MaxInt64)

// Interval returns the samples between which the p-th percentile lies with
// 90 % confidence, so that either end is certain to 95 %, by the binomial
// distribution of ranks: it assumes no shape. It assumes independent
// samples; those of one pause are not, so it is rather too narrow.
func (s *Samples) Interval(p float64) (low, high time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.all)
	below, above := ranks(len(s.all), p/100)
	if below > 0 {
		low = s.all[below-1]
	}
	if above > len(s.all) {
		return low, Unbounded
	}
	return low, s.all[above-1]
}

// tail is the doubt at each end of an interval.
const tail = 0.05

// ranks returns the ranks, from 1, of the samples of n around the
// quantile q: 0 and n+1 if none is far enough.
func ranks(n int, q float64) (below, above int) {
	fewer := 0.0 // the probability that fewer than rank samples are below the quantile
	for above = 0; above <= n && 1-fewer > tail; above++ {
		fewer += binomial(n, above, q)
		if fewer <= tail {
			below = above + 1
		}
	}
	return below, max(above, 1)
}

// binomial returns the probability of k of n, each with probability q
// between 0 and 1.
func binomial(n, k int, q float64) float64 {
	ways := logFactorial(n) - logFactorial(k) - logFactorial(n-k)
	return math.Exp(ways + float64(k)*math.Log(q) + float64(n-k)*math.Log1p(-q))
}

func logFactorial(n int) float64 {
	log, _ := math.Lgamma(float64(n) + 1)
	return log
}

// AddAll adds another's samples.
func (s *Samples) AddAll(others *Samples) {
	others.mu.Lock()
	all := slices.Clone(others.all)
	others.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, all...)
}

// Count returns how many there are.
func (s *Samples) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// A Load is what several workers repeat.
type Load struct {
	Workers   int
	For       time.Duration // 0: until the context ends
	PerSecond float64       // of all workers; 0: each begins again at once
}

// Run repeats do until the time is up or one fails, and returns how long that
// took. With a rate, due is when do should have begun, also if all workers
// were busy then.
func (l Load) Run(ctx context.Context, do func(ctx context.Context, worker int, due time.Time) error) (time.Duration, error) {
	work, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	next := func() (time.Time, bool) {
		return time.Now(), ctx.Err() == nil && (l.For == 0 || time.Since(begun) < l.For)
	}
	if l.PerSecond > 0 {
		due := make(chan time.Time, int(l.PerSecond*l.For.Seconds())+1)
		go l.schedule(ctx, begun, due)
		next = func() (time.Time, bool) {
			at, more := <-due
			return at, more && ctx.Err() == nil
		}
	}
	for worker := range l.Workers {
		work.Go(func() error {
			for due, more := next(); more; due, more = next() {
				if err := do(ctx, worker, due); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := work.Wait()
	return time.Since(begun), err
}

func (l Load) schedule(ctx context.Context, begun time.Time, due chan<- time.Time) {
	defer close(due)
	interval := time.Duration(float64(time.Second) / l.PerSecond)
	for at := begun; at.Sub(begun) < l.For && ctx.Err() == nil; at = at.Add(interval) {
		lifecycle.Pause(ctx, time.Until(at))
		due <- at
	}
}

// Until looks, with pauses, until done is true or fails, or ctx ends.
func Until(ctx context.Context, pause time.Duration, done func(ctx context.Context) (bool, error)) error {
	for {
		if is, err := done(ctx); is || err != nil {
			return err
		}
		if lifecycle.Pause(ctx, pause); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Await is Until for a minute at most; what says what it waits for.
func Await(ctx context.Context, what string, done func(ctx context.Context) (bool, error)) error {
	const timeout, pause = time.Minute, 5 * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := Until(limited, pause, done)
	if limited.Err() != nil {
		return fmt.Errorf("waited for %s until %s: %w", timeout, what, limited.Err())
	}
	return err
}
