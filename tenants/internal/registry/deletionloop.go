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
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const (
	deletionInterval = time.Second // between polls
	deletionBatch    = 100         // of those that can begin, and of those that can finish
)

// A DeletionLoop begins due deletions, and finishes those that all modules
// have reported. What is due is in the database: any replica continues.
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
		unfinished: metric.NewGauge(prometheus.GaugeOpts{Name: "weir_tenants_deletions_unfinished", Help: "Deletions that some module has not reported."}),
		overdue: metric.NewGauge(prometheus.GaugeOpts{
			Name: "weir_tenants_deletions_overdue", Help: "Deletions that some module has not reported in time.",
		}),
	}
}

// Run works until ctx ends. A failure is logged and retried.
func (l *DeletionLoop) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, deletionInterval, l.RunOnce, lifecycle.Warn(l.logger, "cannot advance deletions"))
}

// RunOnce advances deletions. It does not wait for modules' reports.
func (l *DeletionLoop) RunOnce(ctx context.Context) error {
	now := l.deletions.work.Now()
	return errors.Join(l.begin(ctx, now), l.finish(ctx, now), l.count(ctx, now))
}

// begin begins due deletions.
func (l *DeletionLoop) begin(ctx context.Context, now time.Time) error {
	due, err := l.deletions.store.DueDeletions(ctx, now, deletionBatch)
	failed := []error{err}
	for _, d := range due {
		failed = append(failed, l.keep(ctx, d, func(_ *unitofwork.Unit, s tenants.Deletion) ([]tenants.Event, error) { return s.Begin(now) }))
	}
	return errors.Join(failed...)
}

// finish finishes deletions that all modules have reported.
func (l *DeletionLoop) finish(ctx context.Context, now time.Time) error {
	reported, err := l.deletions.store.ReportedDeletions(ctx, contract.ErasingModules(), deletionBatch)
	failed := []error{err}
	for _, d := range reported {
		failed = append(failed, l.keep(ctx, d, func(u *unitofwork.Unit, s tenants.Deletion) ([]tenants.Event, error) {
			left, err := l.deletions.reduced(ctx, u.Tx(), d.Organization, d.ID())
			if err != nil {
				return nil, err
			}
			return s.Finish(tenants.DeletionFinished{At: now, Removed: d.Removed, ReducedLines: left.Lines, ReducedHash: left.Hash()})
		}))
	}
	return errors.Join(failed...)
}

func (l *DeletionLoop) count(ctx context.Context, now time.Time) error {
	unfinished, err := l.deletions.store.UnfinishedDeletions(ctx, now)
	if err != nil {
		return err
	}
	l.unfinished.Set(float64(unfinished.All))
	l.overdue.Set(float64(unfinished.Overdue))
	return nil
}

func (l *DeletionLoop) keep(ctx context.Context, d ListedDeletion, decide func(*unitofwork.Unit, tenants.Deletion) ([]tenants.Event, error)) error {
	if err := l.decide(ctx, d, decide); err != nil {
		return fmt.Errorf("%s: %w", d.ID(), err)
	}
	return nil
}

func (l *DeletionLoop) decide(ctx context.Context, d ListedDeletion, decide func(*unitofwork.Unit, tenants.Deletion) ([]tenants.Event, error)) error {
	u, err := l.deletions.work.BeginHidden(ctx, d.Organization, unitofwork.BySystem("deletion"))
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	stream := deletionStream(d.Deletable)
	if _, err = unitofwork.Change(ctx, u, stream, func(s tenants.Deletion) ([]tenants.Event, error) { return decide(u, s) }); err != nil {
		return err
	}
	return u.CommitNoWait(ctx)
}
