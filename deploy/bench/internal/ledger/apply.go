package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// apply runs replicas until all records are committed and all account
// states published. It returns the rate between the first and the last
// commit seen, and the effort of the whole.
func (w *world) apply(ctx context.Context, replicas, perTransaction int) (found rate, took effort, err error) {
	before := w.effort()
	err = w.with(ctx, replicas, perTransaction, func(ctx context.Context) error {
		first, began, err := w.await(ctx, 1)
		if err != nil {
			return err
		}
		last, ended, err := w.await(ctx, w.published)
		found = rate(float64(last-first) / ended.Sub(began).Seconds())
		err = errors.Join(err, w.settle(ctx))
		took = w.effort().less(before)
		return err
	})
	return found, took, err
}

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
	return w.beside(ctx, func(ctx context.Context) error { return lifecycle.Run(ctx, run...) }, do)
}

// beside does something while a ledger runs, and then ends it.
func (w *world) beside(ctx context.Context, ledger, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- ledger(ctx)
		cancel()
	}()
	err := do(ctx)
	cancel()
	return errors.Join(err, <-ended)
}

// poll is the interval of looks at the positions: a shorter one would
// distort the measurement.
const poll = 10 * time.Millisecond

// await waits until at least so many records are committed, and returns
// how many were, and when.
func (w *world) await(ctx context.Context, least int64) (committed int64, at time.Time, err error) {
	for ticker := time.NewTicker(poll); ; {
		committed, err = w.committed(ctx)
		if err != nil || committed >= least {
			ticker.Stop()
			return committed, time.Now(), err
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			return committed, time.Now(), ctx.Err()
		case <-ticker.C:
		}
	}
}

// settle waits until all account states are published: a rest would
// count as work of the next measurement.
func (w *world) settle(ctx context.Context) error {
	for ticker := time.NewTicker(poll); ; {
		var left bool
		err := pg.InTxAsSystem(ctx, w.pool, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM ledger.unpublished)`).Scan(&left)
		})
		if err != nil || !left {
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

// committed returns how many records the ledger's positions cover. The
// log begins at offset 0.
func (w *world) committed(ctx context.Context) (n int64, err error) {
	err = w.pool.QueryRow(ctx, `SELECT coalesce(sum(next), 0)::bigint FROM ledger.bus_positions WHERE group_name = $1 AND topic = $2`,
		contract.GroupLedger, contract.TopicLogs).Scan(&n)
	return n, err
}
