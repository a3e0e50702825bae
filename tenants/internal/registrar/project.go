package registrar

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// CreateProject creates a project of an organization that the caller reaches.
func (r *Registrar) CreateProject(ctx context.Context, request Request, organization, name string) (tenants.Project, error) {
	cmd := tenants.CreateProject{Organization: organization, Name: name, At: r.now()}
	if err := cmd.Check(); err != nil {
		return tenants.Project{}, err
	}
	if err := r.reachable(ctx, request.Caller, organization); err != nil {
		return tenants.Project{}, err
	}
	cmd.ID = r.newID(request, projectPrefix, organization)
	project, err := create(ctx, r, request, may(tenants.ProjectsWrite), streamOf(organization, "project", cmd.ID),
		func(p tenants.Project) ([]tenants.Event, error) { return p.Create(cmd) }, tenants.CountProjects)
	return project, err
}

// RenameProject gives a project that the caller reaches another name.
func (r *Registrar) RenameProject(ctx context.Context, request Request, id, name string) (tenants.Project, error) {
	cmd := tenants.Rename{Name: name, At: r.now()}
	if err := cmd.Check(); err != nil {
		return tenants.Project{}, err
	}
	found, err := r.Project(ctx, request.Caller, id)
	if err != nil {
		return tenants.Project{}, err
	}
	project, err := update(ctx, r, request, may(tenants.ProjectsWrite), streamOf(found.Organization, "project", id),
		func(p tenants.Project) ([]tenants.Event, error) { return p.Rename(cmd) })
	return project, err
}

// Projects lists the projects of an organization that the caller reaches.
func (r *Registrar) Projects(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.Project, error) {
	if err := r.reachable(ctx, caller, organization); err != nil {
		return nil, err
	}
	return r.Views.Projects(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// Project returns a project that the caller reaches, or ErrNotFound.
func (r *Registrar) Project(ctx context.Context, caller tenants.Caller, id string) (tenants.Project, error) {
	if !tenants.IsID(id) {
		return tenants.Project{}, fmt.Errorf("project %q: %w", id, tenants.ErrNotFound)
	}
	return r.Views.Project(ctx, pg.Organization(caller.Organization), id)
}
