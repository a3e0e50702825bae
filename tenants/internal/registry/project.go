package registry

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Projects decides about projects. Its errors are those of unitofwork.Writer.
type Projects struct {
	work          *unitofwork.Writer
	store         Store
	organizations *Service
}

// NewProjects returns the projects of organizations.
func NewProjects(organizations *Service) *Projects {
	return &Projects{organizations.work, organizations.store, organizations}
}

// Create creates a project of an organization that the caller may access.
func (p *Projects) Create(ctx context.Context, request unitofwork.Request, organization, name string) (project tenants.Project, err error) {
	cmd := tenants.CreateProject{Organization: organization, Name: name, At: p.work.Now()}
	if err := cmd.Check(); err != nil {
		return project, err
	}
	if _, err := p.organizations.Organization(ctx, request.Caller, organization); err != nil {
		return project, err
	}
	cmd.ID = p.work.NewID(request, projectPrefix, organization)
	return unitofwork.CreateOnce(ctx, p.work, request, tenants.ProjectsWrite, unitofwork.Stream(organization, "project", cmd.ID),
		func(p tenants.Project) ([]tenants.Event, error) { return p.Create(cmd) }, counted(tenants.CountProjects, tenants.CountProjectsKept))
}

// Rename renames a project that the caller may access.
func (p *Projects) Rename(ctx context.Context, request unitofwork.Request, id, name string) (tenants.Project, error) {
	cmd := tenants.Rename{Name: name, At: p.work.Now()}
	if err := cmd.Check(); err != nil {
		return tenants.Project{}, err
	}
	found, err := p.Project(ctx, request.Caller, id)
	if err != nil {
		return tenants.Project{}, err
	}
	return unitofwork.Once(ctx, p.work, request, tenants.ProjectsWrite, unitofwork.Stream(found.Organization, "project", id),
		func(p tenants.Project) ([]tenants.Event, error) { return p.Rename(cmd) })
}

// List lists the projects of an organization that the caller may access.
func (p *Projects) List(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.Project, error) {
	if _, err := p.organizations.Organization(ctx, caller, organization); err != nil {
		return nil, err
	}
	return p.store.Projects(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// Project returns a project that the caller may access, or ErrNotFound.
func (p *Projects) Project(ctx context.Context, caller tenants.Caller, id string) (tenants.Project, error) {
	if !tenants.IsID(id) {
		return tenants.Project{}, fmt.Errorf("project %q: %w", id, tenants.ErrNotFound)
	}
	return p.store.Project(ctx, pg.Organization(caller.Organization), id)
}

// ProjectIn is Project in a unit of work:
// no deletion can begin before that ends.
func (p *Projects) ProjectIn(ctx context.Context, u *unitofwork.Unit, organization, id string) (tenants.Project, error) {
	return NewStore(u.Reader()).Project(ctx, pg.Organization(organization), id)
}

// Capacity is how many projects the caller's organization has, and may have.
func (p *Projects) Capacity(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error) {
	return p.work.Capacity(ctx, caller, tenants.CountProjects, count)
}
