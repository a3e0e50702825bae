package consumer

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/tracing"
)

// maxDataFailures is how often records are tried that the database refuses as
// data, or at which the handler panics. Then they count as permanent: a
// conflict with a concurrent transaction is over by then.
const maxDataFailures = 3

// maxLaneFailures is how often in a row a lane's records are
// tried before it is another lane's turn.
const maxLaneFailures = 3

// apply applies or parks all of w, in order. It fails only when
// the assignment is over.
func (a *assignment) apply(ctx context.Context, w lanes.Work) error {
	if w.Empty() || a.through(w) {
		return nil
	}
	err := a.persist(ctx, w, a.consumer.handle)
	if err == nil {
		if len(w.Records) > 0 {
			a.consumer.metrics.took(trace.ContextWithSpanContext(ctx, a.span), w, clock.Now())
			a.consumer.cfg.Committed(w.Records)
		}
		return nil
	}
	var blame *bus.PermanentError
	if !errors.As(err, &blame) {
		return err
	}
	if len(w.Records) == 1 {
		return a.park(ctx, w, blame.Err)
	}
	return a.divide(ctx, w, blame)
}

// through reports whether the part before of divided work went
// as far as its lane goes.
func (a *assignment) through(w lanes.Work) bool {
	if w.Lane == nil || len(w.Records) > 0 {
		return false
	}
	b, behind := a.backlogs[*w.Lane]
	return !behind || b.Next >= w.Until
}

// divide applies smaller groups: around the record that the
// handler blamed, else halves.
func (a *assignment) divide(ctx context.Context, w lanes.Work, blame *bus.PermanentError) error {
	low, high := len(w.Records)/2, len(w.Records)/2
	for i, r := range w.Records {
		if blame.Record && r.Partition == blame.Partition && r.Offset == blame.Offset {
			low, high = i, i+1
		}
	}
	for _, part := range w.Divided(low, high) {
		if err := a.apply(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// transientError is why a lane's records can't be applied yet.
// The others do not wait for them.
type transientError struct{ err error }

func (e *transientError) Error() string { return e.err.Error() }

// persist retries one transaction until it is committed, refused for
// good or fenced; a lane's, a few times.
func (a *assignment) persist(ctx context.Context, w lanes.Work, effect Handler) error {
	m := a.moverOf(w)
	for failures := 1; ; failures++ {
		begun := clock.Now()
		traced, span := a.traced(ctx, w.Records)
		took, err := a.transact(traced, m, w.Records, effect)
		tracing.End(span, err)
		a.span = span.SpanContext()
		a.spent = lanes.Timing{Effect: took, Overhead: clock.Now().Sub(begun) - took}
		a.consumer.metrics.transacted(clock.Now().Sub(begun), err)
		if errors.Is(err, bus.ErrFenced) {
			err = fenced(ctx, m, err)
		}
		switch {
		case err == nil:
			m.committed()
			a.consumer.metrics.deferred.Add(float64(len(w.Deferred)))
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrFenced) || bus.IsPermanent(err):
			return err
		case failures >= maxDataFailures && len(w.Records) > 0 && blamesData(err):
			return bus.Permanent(err)
		case failures >= maxLaneFailures && w.Lane != nil:
			return a.giveUp(ctx, m, err)
		}
		tracing.Logger(traced, a.consumer.logger).Warn("cannot apply records yet", "records", len(w.Records), "failures", failures, "error", err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, 5*time.Second))
	}
}

// giveUp ends the attempts of a lane after an error. It first checks whether
// one was committed whose answer was lost: else the next deferral would restore
// an old position, and apply records twice.
func (a *assignment) giveUp(ctx context.Context, m mover, failed error) error {
	for failures := 1; ; failures++ {
		moved, err := m.moved(ctx)
		switch {
		case err == nil && moved:
			m.committed()
			return nil
		case err == nil:
			return &transientError{failed}
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrFenced):
			return err
		}
		a.consumer.logger.Warn("cannot look whether a lane's records are applied yet", "failures", failures, "error", err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, 5*time.Second))
	}
}

// fenced finds out why the positions did not move. If they are at their goal,
// an earlier commit succeeded whose answer was lost.
func fenced(ctx context.Context, m mover, err error) error {
	moved, asking := m.moved(ctx)
	switch {
	case asking != nil:
		return asking
	case moved:
		return nil
	default:
		return err
	}
}

// transact moves the positions and has the effect in one
// transaction, and returns how long the effect took.
func (a *assignment) transact(ctx context.Context, m mover, records []bus.Record, effect Handler) (took time.Duration, err error) {
	ctx, cancel := a.consumer.bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, a.consumer.cfg.Pool, func(tx pgx.Tx) error {
		if err := m.move(ctx, tx); err != nil || len(records) == 0 {
			return err
		}
		begun := clock.Now()
		defer func() { took = clock.Now().Sub(begun) }()
		return effect(ctx, tx, records)
	})
	return took, err
}

func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, records []bus.Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &bus.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return c.cfg.Handle(ctx, tx, records)
}

// blamesData reports whether the data is at fault, not the database: a panic,
// or SQLSTATE class 22 (data exception) or 23 (integrity constraint violation).
func blamesData(err error) bool {
	var panicked *bus.PanicError
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
