package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
)

const logInterval = 10 * time.Second

// retryDelay is the delay after a failure.
const retryDelay = time.Second

var errLogUnknown = errors.New("the end of the log is not compared with the accounts yet")

// A logWatch compares the end of weir.logs.v1 with the offsets through
// which the published accounts are counted: the ledger has applied what
// the log has lost, whether or not it runs.
type logWatch struct {
	counted func() ingest.Positions
	ends    func(context.Context) (ingest.Positions, error)
	logger  *slog.Logger
	verdict atomic.Pointer[error] // nil: there is none yet
}

func (w *logWatch) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if w.compare(ctx); w.check() == nil {
			lifecycle.Pause(ctx, logInterval)
		} else {
			lifecycle.Pause(ctx, retryDelay)
		}
	}
	return nil
}

// compare keeps the last result where the brokers don't answer. The log
// only grows after the offsets are read.
func (w *logWatch) compare(ctx context.Context) {
	counted := w.counted()
	ends, err := w.ends(ctx)
	if err != nil {
		w.logger.Debug("cannot compare the end of the log with the accounts", slog.String("error", err.Error()))
		return
	}
	verdict, before := lostEnd(counted, ends), w.verdict.Load()
	if w.verdict.Store(&verdict); verdict != nil && (before == nil || *before == nil) {
		w.logger.Error("entries are not accepted", slog.String("error", verdict.Error()))
	}
}

// lostEnd returns an error if a log ends before what is counted.
func lostEnd(counted, ends ingest.Positions) error {
	for _, partition := range slices.Sorted(maps.Keys(counted)) {
		if next, end := counted[partition], ends[partition]; next > end {
			return fmt.Errorf("%w: partition %d of %s ends at %d, and the ledger has counted up to %d: stop all services and run weir resume",
				bus.ErrEndLost, partition, contract.TopicLogs, end, next)
		}
	}
	return nil
}

func (w *logWatch) check() error {
	if verdict := w.verdict.Load(); verdict != nil {
		return *verdict
	}
	return errLogUnknown
}

// LogsIntact returns nil while no consumer's log has lost its end.
func (a *App) LogsIntact() error { return a.base.Logs.Intact() }

// logIntact returns nil while no log lacks what was applied, as far as
// this process knows. Otherwise new entries would get offsets of others
// that were lost, and consumers would pass over them.
func (a *App) logIntact() error {
	err := a.base.Logs.Intact()
	if err == nil {
		err = a.logWatch.check()
	}
	if err == nil && a.config.OthersIntact != nil {
		err = a.config.OthersIntact()
	}
	if bus.IsLostEnd(err) {
		return httpapi.Part("the log lacks records that were applied, and waits for the operator's weir resume", err)
	}
	return httpapi.Part("the log", err)
}
