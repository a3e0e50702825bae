package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// maxAhead is how far the clock may be ahead of the database's: later
// entries would open a period that has not begun. It is the limit of
// Kafka 4; older brokers have none.
const maxAhead = time.Hour

const (
	clockInterval = 5 * time.Second
	clockTimeout  = 5 * time.Second // without a database entries are accepted
)

var errClockUnknown = errors.New("the clock is not compared with the database's yet")

// A clockWatch decides whether this machine's clock may stamp entries.
type clockWatch struct {
	pool    *pgxpool.Pool
	machine func() time.Time // nil: the clock is trusted
	logger  *slog.Logger
	verdict atomic.Pointer[error] // nil: there is none yet
	last    time.Time             // the last reading of machine
}

// run compares the clocks continuously: one may be set while the process runs.
func (w *clockWatch) run(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, clockInterval) {
		w.compare(ctx)
	}
	return nil
}

// compare keeps the verdict while the database does not answer. The
// first is then to accept, as always without a database.
func (w *clockWatch) compare(ctx context.Context) {
	if w.machine == nil {
		return
	}
	w.notice(w.machine())
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	ahead, err := pg.ClockAhead(ctx, w.pool, w.machine)
	var verdict error
	if err == nil && ahead > maxAhead {
		verdict = fmt.Errorf("the clock of this machine is %s ahead of the database's: nothing is accepted", ahead.Round(time.Second))
	}
	before := w.verdict.Load()
	if err != nil && before != nil {
		return
	}
	if w.verdict.Store(&verdict); verdict != nil && (before == nil || *before == nil) {
		w.logger.Error("entries are not accepted", slog.String("error", verdict.Error()))
	}
}

// notice warns once after the machine's clock was set back, by the
// monotonic clock: entries get times that others have had.
func (w *clockWatch) notice(now time.Time) {
	back := now.Sub(w.last) - now.Round(0).Sub(w.last.Round(0))
	if !w.last.IsZero() && back >= time.Second {
		w.logger.Warn("the clock of this machine was set back", slog.Duration("by", back))
	}
	w.last = now
}

// check returns nil if the clock is trusted.
func (w *clockWatch) check() error {
	if w.machine == nil {
		return nil
	}
	if verdict := w.verdict.Load(); verdict != nil {
		return *verdict
	}
	return errClockUnknown
}
