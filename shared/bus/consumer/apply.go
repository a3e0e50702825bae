package consumer

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// apply applies or parks all of w, in order. It fails only when
// the assignment ends.
func (a *assignment) apply(ctx context.Context, w lanes.Work) error {
	if w.Empty() || a.through(w) {
		return nil
	}
	err := a.tx.Run(ctx, a.moverOf(w), w, a.consumer.handle)
	if err == nil {
		if len(w.Records) > 0 {
			a.consumer.metrics.Took(trace.ContextWithSpanContext(ctx, a.tx.Span), w, clock.Now())
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

// through reports whether the earlier part of divided work went to the
// end of its lane's range.
func (a *assignment) through(w lanes.Work) bool {
	if w.Lane == nil || len(w.Records) > 0 {
		return false
	}
	b, behind := a.backlogs[*w.Lane]
	return !behind || b.Next >= w.Until
}

// divide applies smaller groups: around the record at fault if it is
// known, else halves.
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

func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, records []bus.Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &bus.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if !c.cfg.Fillers {
		records = withoutFillers(records)
	}
	if len(records) == 0 {
		return nil
	}
	return c.cfg.Handle(ctx, tx, records)
}

func withoutFillers(records []bus.Record) []bus.Record {
	if !slices.ContainsFunc(records, bus.Record.IsFiller) {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), bus.Record.IsFiller)
}
