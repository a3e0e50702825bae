package transaction

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/status"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/tracing"
)

// A Mover moves the positions of some work, in the transaction of its effect.
type Mover interface {
	Move(ctx context.Context, tx pgx.Tx) error // first in the transaction: locks, refuses a member that lost the positions, refuses repetition
	Moved(ctx context.Context) (bool, error)   // whether an earlier commit whose answer was lost succeeded
	Committed()                                // notes it
}

// An Effect is what a transaction does with records.
type Effect func(ctx context.Context, tx pgx.Tx, records []bus.Record) error

// A Runner runs transactions one by one.
type Runner struct {
	Store   *positions.Store
	Metrics status.Metrics
	Tracer  *tracing.Tracer // nil: none
	Logger  *slog.Logger

	Spent lanes.Timing      // of the last one
	Span  trace.SpanContext // of the last one; invalid: it had none
}

// maxDataFailures is how often a transaction is tried whose records the
// database refuses as data, or at which the handler panics. After it
// the failure counts as permanent: a conflict with a concurrent
// transaction is over by then.
const maxDataFailures = 3

// maxLaneFailures is how often in a row a lane's records are tried
// before another lane's turn.
const maxLaneFailures = 3

// TransientError is why a lane's records can't be applied yet. Other
// lanes do not wait for them.
type TransientError struct{ err error }

func (e *TransientError) Error() string { return e.err.Error() }

// Run retries one transaction until it is committed, refused for good
// or fenced; a lane's only a few times.
func (r *Runner) Run(ctx context.Context, m Mover, w lanes.Work, do Effect) error {
	for failures := 1; ; failures++ {
		begun := clock.Now()
		traced, span := r.traced(ctx, w.Records)
		took, err := r.transact(traced, m, w.Records, do)
		tracing.End(span, err)
		r.Span = span.SpanContext()
		r.Spent = lanes.Timing{Effect: took, Overhead: clock.Now().Sub(begun) - took}
		r.Metrics.Transacted(clock.Now().Sub(begun), err)
		if errors.Is(err, bus.ErrFenced) {
			err = fenced(ctx, m, err)
		}
		switch {
		case err == nil:
			m.Committed()
			r.Metrics.Deferred.Add(float64(len(w.Deferred)))
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrFenced) || bus.IsPermanent(err):
			return err
		case failures >= maxDataFailures && len(w.Records) > 0 && BlamesData(err):
			return bus.Permanent(err)
		case failures >= maxLaneFailures && w.Lane != nil:
			return r.giveUp(ctx, m, err)
		}
		tracing.Logger(traced, r.Logger).Warn("cannot apply records yet", "records", len(w.Records), "failures", failures, "error", err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, 5*time.Second))
	}
}

// giveUp ends a lane's attempts after an error. It first checks for a
// commit whose answer was lost: else the next deferral would restore an
// old position, and apply records twice.
func (r *Runner) giveUp(ctx context.Context, m Mover, failed error) error {
	for failures := 1; ; failures++ {
		moved, err := m.Moved(ctx)
		switch {
		case err == nil && moved:
			m.Committed()
			return nil
		case err == nil:
			return &TransientError{failed}
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrFenced):
			return err
		}
		r.Logger.Warn("cannot look whether a lane's records are applied yet", "failures", failures, "error", err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, 5*time.Second))
	}
}

// fenced finds out why the positions did not move. If they are at their
// goal, an earlier commit whose answer was lost has succeeded.
func fenced(ctx context.Context, m Mover, err error) error {
	moved, asking := m.Moved(ctx)
	switch {
	case asking != nil:
		return asking
	case moved:
		return nil
	default:
		return err
	}
}

// transact moves the positions and has the effect in one transaction.
// It returns how long the effect took.
func (r *Runner) transact(ctx context.Context, m Mover, records []bus.Record, do Effect) (took time.Duration, err error) {
	err = r.Store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := m.Move(ctx, tx); err != nil || len(records) == 0 {
			return err
		}
		begun := clock.Now()
		defer func() { took = clock.Now().Sub(begun) }()
		return do(ctx, tx, records)
	})
	return took, err
}

// BlamesData reports whether the data is at fault, not the database: a panic,
// or SQLSTATE class 22 (data exception) or 23 (integrity constraint violation).
func BlamesData(err error) bool {
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

// traced begins the span of one transaction, linked to the requests
// of the records.
func (r *Runner) traced(ctx context.Context, records []bus.Record) (context.Context, trace.Span) {
	var parents []string
	if r.Tracer != nil {
		parents = traceparents(records)
	}
	return r.Tracer.Transaction(ctx, r.Store.Group, r.Store.Topic, len(records), parents)
}

// traceparents returns those of the first sampled requests among
// records. One request's records are consecutive.
func traceparents(records []bus.Record) (found []string) {
	for _, r := range records {
		text := r.Header(contract.HeaderTraceparent)
		if !tracing.IsSampled(text) || len(found) > 0 && found[len(found)-1] == text {
			continue
		}
		if found = append(found, text); len(found) == tracing.MaxLinks {
			break
		}
	}
	return found
}
