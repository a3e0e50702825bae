package logend

import (
	"context"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/logrange"
)

// copiedBytes is the size of a batch of copies, unless one record is larger.
const copiedBytes = 256 << 10

// copy appends a range of the log to its end. It keeps no more than a
// batch in memory.
func (l *log) copy(ctx context.Context, from, to int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &copier{log: l, ctx: ctx, cancel: cancel, batch: newBatch()}
	_, err := l.reader().Read(ctx, l.partition, from, to, c.take)
	if err == nil {
		c.flush()
	}
	if c.err != nil {
		return c.err
	}
	return err
}

func (l *log) reader() *logrange.Reader {
	return &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: l.Topic}
}

// A copier appends records while they are read.
type copier struct {
	*log
	ctx    context.Context //nolint:containedctx // of the reading that hands it records
	cancel context.CancelCauseFunc
	batch  *batch.Batch
	err    error
}

func (c *copier) take(r bus.Record) {
	if c.err != nil || r.IsFiller() {
		return
	}
	out := batch.NewOutgoing(bus.NewMessage(r), nil)
	if !c.batch.Takes(out.Bound(), copiedBytes) {
		c.flush()
	}
	c.batch.Add(out, r.Time.UnixMilli())
}

func (c *copier) flush() {
	if c.batch.Count == 0 {
		return
	}
	if c.err = c.append(c.ctx, c.batch); c.err != nil {
		c.cancel(c.err)
	}
	c.batch = newBatch()
}
