package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Reduced adds up the lines of an organization's audit reduced by a deletion.
type Reduced func(ctx context.Context, tx pgx.Tx, organization, deletion string) (tenants.Reduction, error)

// Deletions decides about the deletion of organizations and projects.
// Its errors are those of unitofwork.Writer, and tenants.ErrBegun.
type Deletions struct {
	work          *unitofwork.Writer
	store         Store
	organizations *Service
	projects      *Projects
	grace         time.Duration
	reduced       Reduced
}

// NewDeletions returns the deletions of organizations and
// their projects, which can be cancelled during grace.
func NewDeletions(organizations *Service, projects *Projects, grace time.Duration, reduced Reduced) *Deletions {
	return &Deletions{organizations.work, organizations.store, organizations, projects, grace, reduced}
}

// Within returns the deletions with another grace.
func (d Deletions) Within(grace time.Duration) *Deletions {
	d.grace = grace
	return &d
}

// DeleteProject begins the deletion of a project that the
// caller may access. On return, the project is hidden and
// its keys are refused, as after a revocation.
func (d *Deletions) DeleteProject(ctx context.Context, request unitofwork.Request, id string) (tenants.Deletion, error) {
	return d.delete(ctx, request, id, func() (tenants.Deletable, error) {
		project, err := d.projects.Project(ctx, request.Caller, id)
		return tenants.Deletable{Organization: project.Organization, Project: id}, err
	})
}

// DeleteOrganization is DeleteProject for
// an organization. Its sessions end, too.
func (d *Deletions) DeleteOrganization(ctx context.Context, request unitofwork.Request, id string) (tenants.Deletion, error) {
	return d.delete(ctx, request, id, func() (tenants.Deletable, error) {
		_, err := d.organizations.Organization(ctx, request.Caller, id)
		return tenants.Deletable{Organization: id}, err
	})
}

// delete decides to delete what find finds. What is being
// deleted is not found again, and its deletion stays.
func (d *Deletions) delete(ctx context.Context, request unitofwork.Request, id string, find func() (tenants.Deletable, error)) (tenants.Deletion, error) {
	if err := mayDelete(request); err != nil {
		return tenants.Deletion{}, err
	}
	now := d.work.Now()
	if before, err := d.store.Deletion(ctx, pg.Organization(request.Caller.Organization), id); err == nil && before.State != tenants.DeletionCancelledState {
		return d.decide(ctx, request, before.Deletable, func(s tenants.Deletion) ([]tenants.Event, error) { return s.Request(before.Deletable, now, d.grace) })
	}
	of, err := find()
	if err != nil {
		return tenants.Deletion{}, err
	}
	return d.decide(ctx, request, of, func(s tenants.Deletion) ([]tenants.Event, error) { return s.Request(of, now, d.grace) })
}

// Restore cancels the deletion of an organization or project that
// the caller may access. On return, keys are in force again.
func (d *Deletions) Restore(ctx context.Context, request unitofwork.Request, id string) (tenants.Deletion, error) {
	if err := mayDelete(request); err != nil {
		return tenants.Deletion{}, err
	}
	found, err := d.deletion(ctx, request.Caller, id)
	if err != nil {
		return tenants.Deletion{}, err
	}
	now := d.work.Now()
	return d.decide(ctx, request, found.Deletable, func(s tenants.Deletion) ([]tenants.Event, error) { return s.Cancel(now) })
}

// mayDelete refuses tokens other than operators'. A
// member's role is checked within the unit of work.
func mayDelete(request unitofwork.Request) error {
	if request.Role != "" {
		return nil
	}
	return unitofwork.Check(request.Caller.Role(), tenants.DeletionsManage)
}

func (d *Deletions) deletion(ctx context.Context, caller tenants.Caller, id string) (ListedDeletion, error) {
	if !tenants.IsID(id) {
		return ListedDeletion{}, fmt.Errorf("deletion of %q: %w", id, tenants.ErrNotFound)
	}
	return d.store.Deletion(ctx, pg.Organization(caller.Organization), id)
}

// decide stores a decision of a permitted caller.
func (d *Deletions) decide(ctx context.Context, request unitofwork.Request, of tenants.Deletable,
	decide func(tenants.Deletion) ([]tenants.Event, error)) (deletion tenants.Deletion, err error) {
	u, err := d.work.BeginHidden(ctx, of.Organization, request)
	if err != nil {
		return deletion, err
	}
	defer u.Rollback(ctx)
	role, err := u.Role(ctx)
	if err != nil {
		return deletion, err
	}
	if err := unitofwork.Check(role, tenants.DeletionsManage); err != nil {
		return deletion, err
	}
	if deletion, err = unitofwork.Change(ctx, u, deletionStream(of), decide); err != nil {
		return deletion, err
	}
	return deletion, u.Commit(ctx)
}

// List lists the deletions of an organization that
// the caller may access, and of its projects.
func (d *Deletions) List(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]ListedDeletion, error) {
	as := pg.Organization(caller.Organization)
	if _, err := d.organizations.Organization(ctx, caller, organization); err != nil {
		if known, knowing := d.store.hasDeletion(ctx, as, organization); knowing != nil || !known {
			return nil, err
		}
	}
	return d.store.Deletions(ctx, as, pg.Organization(organization), after, limit)
}

func deletionStream(of tenants.Deletable) eventstore.Stream {
	return unitofwork.Stream(of.Organization, "deletion", of.ID())
}

const (
	deletionInterval = 2 * time.Second // between polls
	deletionBatch    = 100             // of those that can begin, and of those that can finish
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

// overAt is when a deletion was finished or cancelled; null: it was not.
const overAt = `CASE state WHEN 'gone' THEN finished_at WHEN 'cancelled' THEN requested_at END`

// A PastDeletion is finished or cancelled:
// its subject is gone, or was restored.
type PastDeletion struct {
	tenants.Deletable
	State tenants.DeletionState
}

// TakePastDeletions removes at most limit deletions that ended
// before an instant, and returns them. tx must act as the system.
func TakePastDeletions(ctx context.Context, tx pgx.Tx, before time.Time, limit int) ([]PastDeletion, error) {
	rows, err := tx.Query(ctx, `DELETE FROM deletions WHERE id IN (SELECT id FROM deletions WHERE `+overAt+` < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING organization, project, state`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot remove past deletions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[PastDeletion])
}

// OldestDeletion is when the first deletion ended; zero if none has.
func OldestDeletion(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	var at *time.Time
	err := tx.QueryRow(ctx, `SELECT min(`+overAt+`) FROM deletions`).Scan(&at)
	return query.OrZero(at), err
}
