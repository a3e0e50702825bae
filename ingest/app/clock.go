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

// aheadMost is how far the clock may be ahead of the database's: later entries
// would open a period that has not begun, for brokers before Kafka 4 take
// records of any time. It is the limit of Kafka 4.
const aheadMost = time.Hour

const (
	clockInterval = 5 * time.Second
	clockTimeout  = 5 * time.Second // a database that is away keeps nobody from accepting
)

var errClockUnknown = errors.New("the clock is not compared with the database's yet")

// A clockWatch decides whether this machine's clock may stamp entries.
type clockWatch struct {
	pool    *pgxpool.Pool
	machine func() time.Time // nil: whoever moves the clock is believed
	logger  *slog.Logger
	verdict atomic.Pointer[error] // nil: there is none yet
}

// run compares the clocks all the time: one may be set wrong
// while the process runs.
func (w *clockWatch) run(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, clockInterval) {
		w.compare(ctx)
	}
	return nil
}

// compare leaves the verdict as it is while the database does not answer; a
// first one is then that entries are taken in, as they are without a database.
func (w *clockWatch) compare(ctx context.Context) {
	if w.machine == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clockTimeout)
	defer cancel()
	ahead, err := pg.ClockAhead(ctx, w.pool, w.machine)
	var verdict error
	if err == nil && ahead > aheadMost {
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

// check is nil where the clock is believed.
func (w *clockWatch) check() error {
	if w.machine == nil {
		return nil
	}
	if verdict := w.verdict.Load(); verdict != nil {
		return *verdict
	}
	return errClockUnknown
}
