package measure

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

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
		time.Sleep(time.Until(at))
		due <- at
	}
}
