package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const (
	deletionInterval = time.Second // between looks for deletions whose time has come
	deletionsAtOnce  = 100
)

// A DeletionLoop begins deletions when their time has come, and finishes those of which all modules have reported. What is due is in the
// database: any replica goes on.
type DeletionLoop struct {
	deletions  *Deletions
	logger     *slog.Logger
	unfinished prometheus.Gauge
	overdue    prometheus.Gauge
}

// NewDeletionLoop returns the loop of some deletions.
func NewDeletionLoop(deletions *Deletions, metrics prometheus.Registerer, logger *slog.Logger) *DeletionLoop {
	metric := promauto.With(metrics)
	return &DeletionLoop{
		deletions: deletions, logger: logger,
		unfinished: metric.NewGauge(prometheus.GaugeOpts{Name: "weir_tenants_deletions_unfinished", Help: "Deletions that some module has not reported of."}),
		overdue: metric.NewGauge(prometheus.GaugeOpts{
			Name: "weir_tenants_deletions_overdue", Help: "Deletions that some module has not reported of by the time at which all should be gone.",
		}),
	}
}

// Run works until ctx ends. A failure is logged and tried again.
func (l *DeletionLoop) Run(ctx context.Context) error {
	ticker := time.NewTicker(deletionInterval)
	defer ticker.Stop()
	for {
		if err := l.RunOnce(ctx); err != nil && ctx.Err() == nil {
			l.logger.Warn("cannot go on with deletions", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// RunOnce brings forward what can be.
func (l *DeletionLoop) RunOnce(ctx context.Context) error {
	now := l.deletions.work.Now()
	found, err := l.deletions.store.UnfinishedDeletions(ctx, now, deletionsAtOnce)
	if err != nil {
		return err
	}
	var failed []error
	unfinished, overdue := 0, 0
	for _, d := range found {
		finished, err := l.advance(ctx, d, now)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", d.ID(), err))
		}
		if finished {
			continue
		}
		if unfinished++; d.GoneBy.Before(now) {
			overdue++
		}
	}
	l.unfinished.Set(float64(unfinished))
	l.overdue.Set(float64(overdue))
	return errors.Join(failed...)
}

// advance begins a deletion, or finishes it where all modules have reported.
func (l *DeletionLoop) advance(ctx context.Context, d ListedDeletion, now time.Time) (finished bool, err error) {
	if d.State == tenants.Deleting {
		return false, l.keep(ctx, d, func(_ *unitofwork.Unit, s tenants.Deletion) ([]tenants.Event, error) { return s.Begin(now) })
	}
	for _, module := range contract.ErasingModules() {
		if _, reported := d.Removed[module]; !reported {
			return false, nil
		}
	}
	return true, l.keep(ctx, d, func(u *unitofwork.Unit, s tenants.Deletion) ([]tenants.Event, error) {
		left, err := l.deletions.reduced(ctx, u.Tx(), d.Organization, d.ID())
		if err != nil {
			return nil, err
		}
		return s.Finish(tenants.DeletionFinished{At: now, Removed: d.Removed, ReducedLines: left.Lines, ReducedHash: left.Hash()})
	})
}

func (l *DeletionLoop) keep(ctx context.Context, d ListedDeletion, decide func(*unitofwork.Unit, tenants.Deletion) ([]tenants.Event, error)) error {
	u, err := l.deletions.work.BeginHidden(ctx, d.Organization, unitofwork.BySystem("deletion"))
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	stream := deletionStream(d.Deletable)
	if _, err = unitofwork.Change(ctx, u, stream, func(s tenants.Deletion) ([]tenants.Event, error) { return decide(u, s) }); err != nil {
		return err
	}
	return u.Keep(ctx)
}
