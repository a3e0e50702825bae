package bus

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// patience is how often records that the database refuses as data, or that make the handler panic, are tried before they count as
// permanent. A conflict with a concurrent transaction is over by then.
const patience = 3

// apply applies records in transactions, all or parked, in order. It returns an error only when the assignment is over.
func (a *assignment) apply(ctx context.Context, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	err := a.persist(ctx, records, a.consumer.handle)
	if err == nil {
		a.consumer.metrics.applied.Add(float64(len(records)))
		a.consumer.cfg.Committed(records)
		return nil
	}
	var blame *permanentError
	if !errors.As(err, &blame) {
		return err
	}
	if len(records) == 1 {
		return a.park(ctx, records[0], blame.err)
	}
	return a.divide(ctx, records, blame)
}

// divide applies smaller groups: around the record that is to blame if the handler named it, else halves.
func (a *assignment) divide(ctx context.Context, records []Record, blame *permanentError) error {
	low, high := len(records)/2, len(records)/2
	for i, r := range records {
		if blame.record && r.Partition == blame.partition && r.Offset == blame.offset {
			low, high = i, i+1
		}
	}
	for _, group := range [][]Record{records[:low], records[low:high], records[high:]} {
		if err := a.apply(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// persist runs one transaction until it is committed, refused for good, or not ours any more.
func (a *assignment) persist(ctx context.Context, records []Record, effect Handler) error {
	m := a.movesFor(records)
	for failures := 1; ; failures++ {
		begun := now()
		err := a.transact(ctx, m, records, effect)
		a.consumer.metrics.transacted(now().Sub(begun), err)
		if errors.Is(err, ErrFenced) {
			err = a.fenced(ctx, m, err)
		}
		switch {
		case err == nil:
			a.advance(m)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrFenced) || IsPermanent(err):
			return err
		case failures >= patience && blamesData(err):
			return Permanent(err)
		}
		a.consumer.logger.Warn("cannot apply records yet", "records", len(records), "failures", failures, "error", err)
		pause(ctx, backoff(failures, 20*time.Millisecond, 5*time.Second))
	}
}

// fenced looks why the positions did not move. If they are where they were to go, an earlier commit succeeded and its answer was lost.
func (a *assignment) fenced(ctx context.Context, m moves, err error) error {
	moved, asking := a.alreadyMoved(ctx, m)
	switch {
	case asking != nil:
		return asking
	case moved:
		return nil
	default:
		return err
	}
}

// transact moves the positions and takes the effect in one transaction.
func (a *assignment) transact(ctx context.Context, m moves, records []Record, effect Handler) error {
	ctx, cancel := a.consumer.bounded(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, a.consumer.cfg.Pool, func(tx pgx.Tx) error {
		if err := a.move(ctx, tx, m); err != nil {
			return err
		}
		return effect(ctx, tx, records)
	})
}

// panicError is a handler's panic as an error.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("handler panicked: %v\n%s", e.value, e.stack) }

func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, records []Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return c.cfg.Handle(ctx, tx, records)
}

// blamesData reports whether an error is about what was to be written rather than about the database's condition: a panic, or
// SQLSTATE class 22 (data exception) or 23 (integrity constraint violation).
func blamesData(err error) bool {
	var panicked *panicError
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &panicked):
		return true
	case errors.As(err, &refused):
		return strings.HasPrefix(refused.Code, "22") || strings.HasPrefix(refused.Code, "23")
	default:
		return false
	}
}
