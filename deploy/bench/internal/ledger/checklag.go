package ledger

import (
	"context"
	"fmt"
	"time"
)

// A CheckLag is how far checks lag behind a ledger that books as fast
// as it can.
type CheckLag struct {
	Max time.Duration // the highest age of the oldest unchecked range
	End time.Duration // from the last booking to the end of its check
}

// Goals of a CheckLag: the time between two rounds, and two more for
// a round itself.
const (
	checkEvery  = time.Second
	maxCheckLag = 3 * time.Second
	betweenLags = 20 * time.Millisecond
)

// measureCheckLag makes a ledger check each second what it books at
// its full rate.
func measureCheckLag(ctx context.Context, w *world, r *Result) error {
	if err := w.accept(ctx, w.config.Rebuilt, organizations); err != nil {
		return err
	}
	w.checked = checkEvery
	return w.with(ctx, 1, 0, func(ctx context.Context) (err error) {
		r.CheckLag, err = w.followChecks(ctx)
		return err
	})
}

// followChecks polls the age of the oldest unchecked range until all
// records are booked and checked.
func (w *world) followChecks(ctx context.Context) (found CheckLag, err error) {
	ticker := time.NewTicker(betweenLags)
	defer ticker.Stop()
	var booked time.Time // zero: not all are
	for {
		unchecked, err := w.unchecked(ctx)
		if err != nil {
			return found, err
		}
		found.Max = max(found.Max, unchecked)
		if !booked.IsZero() && unchecked == 0 {
			found.End = time.Since(booked)
			return found, nil
		}
		if committed, err := w.committed(ctx); err != nil {
			return found, err
		} else if booked.IsZero() && committed >= w.published {
			booked = time.Now()
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-ticker.C:
		}
	}
}

// unchecked returns the age of the oldest unchecked range; 0: all are checked.
func (w *world) unchecked(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := w.pool.QueryRow(ctx, `SELECT coalesce(extract(epoch FROM clock_timestamp() - min(booked_at)), 0)::float8
		FROM ledger.bus_positions p LEFT JOIN ledger.checked_ranges c USING (partition) CROSS JOIN LATERAL (
			SELECT booked_at FROM ledger.ranges r WHERE r.partition = p.partition AND first_offset >= coalesce(c.next, 0) ORDER BY first_offset LIMIT 1) oldest`).
		Scan(&seconds)
	if err != nil {
		return 0, fmt.Errorf("cannot read what is not checked: %w", err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
