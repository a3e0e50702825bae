package registry

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// CreateProject creates a project of an organization that the caller reaches.
func (s *Service) CreateProject(ctx context.Context, request unitofwork.Request, organization, name string) (project tenants.Project, err error) {
	cmd := tenants.CreateProject{Organization: organization, Name: name, At: s.work.Now()}
	if err := cmd.Check(); err != nil {
		return project, err
	}
	if _, err := s.Organization(ctx, request.Caller, organization); err != nil {
		return project, err
	}
	cmd.ID = s.work.NewID(request, projectPrefix, organization)
	return unitofwork.CreateOnce(ctx, s.work, request, tenants.ProjectsWrite, unitofwork.Stream(organization, "project", cmd.ID),
		func(p tenants.Project) ([]tenants.Event, error) { return p.Create(cmd) }, room(tenants.CountProjects, tenants.CountProjectsKept))
}

// RenameProject gives a project that the caller reaches another name.
func (s *Service) RenameProject(ctx context.Context, request unitofwork.Request, id, name string) (tenants.Project, error) {
	cmd := tenants.Rename{Name: name, At: s.work.Now()}
	if err := cmd.Check(); err != nil {
		return tenants.Project{}, err
	}
	found, err := s.Project(ctx, request.Caller, id)
	if err != nil {
		return tenants.Project{}, err
	}
	return unitofwork.Once(ctx, s.work, request, tenants.ProjectsWrite, unitofwork.Stream(found.Organization, "project", id),
		func(p tenants.Project) ([]tenants.Event, error) { return p.Rename(cmd) })
}

// Projects lists the projects of an organization that the caller reaches.
func (s *Service) Projects(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.Project, error) {
	if _, err := s.Organization(ctx, caller, organization); err != nil {
		return nil, err
	}
	return s.store.Projects(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// Project returns a project that the caller reaches, or ErrNotFound.
func (s *Service) Project(ctx context.Context, caller tenants.Caller, id string) (tenants.Project, error) {
	if !tenants.IsID(id) {
		return tenants.Project{}, fmt.Errorf("project %q: %w", id, tenants.ErrNotFound)
	}
	return s.store.Project(ctx, pg.Organization(caller.Organization), id)
}

// ProjectIn is Project in a unit of work, before whose end no deletion can begin.
func (s *Service) ProjectIn(ctx context.Context, u *unitofwork.Unit, organization, id string) (tenants.Project, error) {
	return NewStore(u.Reader()).Project(ctx, pg.Organization(organization), id)
}

// ProjectRoom is how many projects the organization of a caller has, and may have.
func (s *Service) ProjectRoom(ctx context.Context, caller tenants.Caller) (tenants.Room, error) {
	return s.work.RoomLeft(ctx, caller, tenants.CountProjects, count)
}
