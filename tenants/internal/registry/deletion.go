package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
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
