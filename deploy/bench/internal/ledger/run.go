package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// with runs replicas while it does something.
func (w *world) with(ctx context.Context, replicas, perTransaction int, do func(context.Context) error) error {
	var run []func(context.Context) error
	for range replicas {
		app, err := w.replica(ctx, perTransaction)
		if err != nil {
			return err
		}
		run = append(run, app.Run)
	}
	return beside(ctx, func(ctx context.Context) error { return lifecycle.Run(ctx, run...) }, do)
}

// beside does something while another runs, and then ends that.
func beside(ctx context.Context, other, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- other(ctx)
		cancel()
	}()
	err := do(ctx)
	cancel()
	return errors.Join(err, <-ended)
}

// poll is the interval of looks: a shorter one would distort the measurement.
const poll = 10 * time.Millisecond

// until polls until something is done, or fails.
func until(ctx context.Context, done func() (bool, error)) error {
	for ticker := time.NewTicker(poll); ; {
		if is, err := done(); is || err != nil {
			ticker.Stop()
			return err
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// await waits until at least so many records are committed, and returns
// how many were, and when.
func (w *world) await(ctx context.Context, least int64) (committed int64, at time.Time, err error) {
	err = until(ctx, func() (bool, error) {
		committed, err = w.committed(ctx)
		return committed >= least, err
	})
	return committed, time.Now(), err
}

// committed returns how many records the ledger's positions cover. The
// log begins at offset 0.
func (w *world) committed(ctx context.Context) (n int64, err error) {
	err = w.pool.QueryRow(ctx, `SELECT coalesce(sum(next), 0)::bigint FROM ledger.bus_positions WHERE group_name = $1 AND topic = $2`,
		contract.GroupLedger, contract.TopicLogs).Scan(&n)
	return n, err
}

// settled reports whether all account states are published.
func (w *world) settled(ctx context.Context) (yes bool, err error) {
	err = pg.InTxAsSystem(ctx, w.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM ledger.unpublished)`).Scan(&yes)
	})
	return yes, err
}

// unchecked returns the age of the oldest unchecked range; 0: all are checked.
func (w *world) unchecked(ctx context.Context) (time.Duration, error) {
	var seconds float64
	err := w.pool.QueryRow(ctx, `SELECT coalesce(extract(epoch FROM clock_timestamp() - min(booked_at)), 0)::float8
		FROM ledger.bus_positions p LEFT JOIN ledger.checked_ranges c USING (partition) CROSS JOIN LATERAL (
			SELECT booked_at FROM ledger.ranges r WHERE r.partition = p.partition AND first_offset >= coalesce(c.next, 0) ORDER BY first_offset LIMIT 1) oldest`).
		Scan(&seconds)
	return time.Duration(seconds * float64(time.Second)), err
}

// A reader repeats one request, without a network between.
type reader struct {
	handler     http.Handler
	token, path string
}

// read runs a ledger, and lets do read a path of the first organization
// once all records are applied and the path is answered.
func (w *world) read(ctx context.Context, path string, do func(context.Context, *reader) error) error {
	secret, err := w.token(ctx)
	if err != nil {
		return err
	}
	replica, err := w.replica(ctx, 0)
	if err != nil {
		return err
	}
	r := &reader{replica.Handler(), secret, "/v1/organizations/" + organization(0) + path}
	return beside(ctx, replica.Run, func(ctx context.Context) error {
		if _, _, err := w.await(ctx, w.published); err != nil {
			return err
		}
		const long = 30 * time.Second
		deadline := time.Now().Add(long)
		err := until(ctx, func() (bool, error) {
			err := r.ask(ctx)
			if err != nil && time.Now().Before(deadline) {
				return false, nil
			}
			return true, err
		})
		if err != nil {
			return err
		}
		return do(ctx, r)
	})
}

func (r *reader) ask(ctx context.Context) error {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, r.path, nil)
	request.Header.Set("Authorization", "Bearer "+r.token)
	recorder := httptest.NewRecorder()
	if r.handler.ServeHTTP(recorder, request); recorder.Code != http.StatusOK {
		return fmt.Errorf("%s is answered %d: %s", r.path, recorder.Code, recorder.Body.String())
	}
	return nil
}

// repeat asks for a time, 0: until ctx ends, with pauses that leave a core
// idle, and returns p50 and p99.
func (r *reader) repeat(ctx context.Context, long time.Duration) ([]time.Duration, error) {
	const gap = 5 * time.Millisecond
	var took measure.Samples
	_, err := measure.Load{Workers: 1, For: long}.Run(ctx, func(ctx context.Context, _ int, _ time.Time) error {
		lifecycle.Pause(ctx, gap)
		return took.Time(func() error { return r.ask(context.WithoutCancel(ctx)) })
	})
	return took.Percentiles(50, 99), err
}
