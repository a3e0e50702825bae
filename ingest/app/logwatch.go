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

// runLogStore stores the log once the topic exists: a group member that
// joins earlier never gets partitions.
func (a *App) runLogStore(ctx context.Context) error {
	if err := a.ensureTopics(ctx); err != nil {
		return err
	}
	for {
		err := a.migrate(ctx)
		if err == nil {
			break
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		a.base.Logger.Warn("cannot keep entries yet: the log holds them", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, retryDelay)
	}
	return lifecycle.Run(ctx, a.consumer.Run, a.tenants.Run, a.eraser.Run, a.pruner.Run, a.merger.Run, a.sumUncounted)
}

// migrateTimeout is how long a start waits for the schema. runLogStore
// continues without a deadline, which would restart large migrations forever.
const migrateTimeout = 10 * time.Second

// migrateAtStart is migrate for a start, which accepts entries without
// the database.
func (a *App) migrateAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	return a.migrate(ctx)
}

// migrate brings the schema up to date, once, and reads the
// cursor key. It may wait for another process.
func (a *App) migrate(ctx context.Context) error {
	if a.migrated {
		return nil
	}
	err := a.base.Migrate(ctx, Schema())
	a.migrated = err == nil
	return err
}

// ensureTopics creates ingest's topics where they are missing.
// It retries until there is a broker.
func (a *App) ensureTopics(ctx context.Context) error {
	for ctx.Err() == nil {
		err := a.base.EnsureTopics(ctx, contract.Topics(a.config.LogPartitions, a.config.LogRetention))
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			a.base.Logger.Warn("cannot create the topics yet", slog.String("error", err.Error()))
		}
		lifecycle.Pause(ctx, retryDelay)
	}
	return nil
}

// retryDelay is the delay after a failure.
const retryDelay = time.Second

// readUncounted finds once what was accepted before this process started and
// is not in the accounts. It runs after the accounts are read, as the
// gap starts where they end.
func (a *App) readUncounted(ctx context.Context) error {
	select {
	case <-a.accounts.Ready():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		charges, err := a.uncounted.Read(ctx, a.gate.Marker())
		if err == nil {
			for _, c := range charges {
				a.gate.Found(c)
			}
			a.uncountedRead.Store(true)
			break
		}
		a.base.Logger.Warn("cannot read the log behind the ledger yet", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, retryDelay)
	}
	return nil
}

// gapInterval is how often it checks whether the ledger is far behind.
const gapInterval = 5 * time.Second

// sumUncounted keeps later starts of all processes short while the ledger is
// far behind.
func (a *App) sumUncounted(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, gapInterval) {
		if a.accounts.Complete() != nil {
			continue
		}
		if err := a.uncounted.Sum(ctx, a.gate.Marker()); err != nil && ctx.Err() == nil {
			a.base.Logger.Warn("cannot sum up the log behind the ledger yet", slog.String("error", err.Error()))
		}
	}
	return nil
}

// How often requests of unknown outcome are resolved, and how long after the
// publisher gave up a copy of one can still arrive at the broker.
const (
	resolveInterval = 5 * time.Second
	resolveAfter    = 30 * time.Second
)

// resolve finds, for requests of unknown outcome, the offsets below
// which they are if they are in the log.
func (a *App) resolve(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, resolveInterval) {
		before := a.base.Clock().Add(-resolveAfter)
		if !a.gate.Incomplete(before) {
			continue
		}
		ends, err := a.log.Ends(ctx)
		if err != nil {
			a.base.Logger.Warn("cannot resolve requests of unknown outcome yet", slog.String("error", err.Error()))
			continue
		}
		a.gate.Resolve(before, ends)
	}
	return nil
}
