package registry

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Prefixes of ids, for readers.
const (
	organizationPrefix = "org_"
	projectPrefix      = "prj_"
	serviceTokenPrefix = "tok_"
)

// A Service decides about organizations. Its
// errors are those of unitofwork.Writer.
type Service struct {
	work   *unitofwork.Writer
	store  Store
	tierOf func(organization string) tenants.Tier
}

// NewService returns a service; tierOf is an
// organization's present tier, empty if unknown.
func NewService(work *unitofwork.Writer, tierOf func(organization string) tenants.Tier) *Service {
	return &Service{work, NewStore(work.Views), tierOf}
}

// subscribed is the organization with its present tier. Our own events
// have only the first one: the ledger decides about the others.
func (s *Service) subscribed(o tenants.Organization) tenants.Organization {
	o.Tier = cmp.Or(s.tierOf(o.ID), o.Tier)
	return o
}

// Create creates an organization; only an operator may.
func (s *Service) Create(ctx context.Context, request unitofwork.Request, name string, tier tenants.Tier) (
	organization tenants.Organization, err error) {
	if !request.Caller.IsOperator() {
		return organization, fmt.Errorf("create an organization: %w", tenants.ErrForbidden)
	}
	cmd := tenants.CreateOrganization{ID: s.work.NewID(request, organizationPrefix, tenants.Installation), Name: name, Tier: tier, At: s.work.Now()}
	u, err := s.work.Begin(ctx, cmd.ID, request)
	if err != nil {
		return organization, err
	}
	defer u.Rollback(ctx)
	organization, err = unitofwork.Change(ctx, u, unitofwork.Stream(cmd.ID, "organization", cmd.ID),
		func(o tenants.Organization) ([]tenants.Event, error) { return o.Create(cmd) })
	if err != nil {
		return organization, err
	}
	return s.subscribed(organization), u.Commit(ctx)
}

// NewOrganizationID draws the id of a future organization.
func (s *Service) NewOrganizationID() string { return organizationPrefix + s.work.IDs() }

// CreateIn creates an organization in the unit of work of its first owner.
func (s *Service) CreateIn(ctx context.Context, u *unitofwork.Unit, cmd tenants.CreateOrganization) error {
	_, err := unitofwork.Change(ctx, u, unitofwork.Stream(cmd.ID, "organization", cmd.ID),
		func(o tenants.Organization) ([]tenants.Event, error) { return o.Create(cmd) })
	return err
}

// List lists the organizations that the caller may see.
func (s *Service) List(ctx context.Context, caller tenants.Caller, after query.Position, limit int) ([]tenants.Organization, error) {
	found, err := s.store.Organizations(ctx, pg.Organization(caller.Organization), after, limit)
	for i, o := range found {
		found[i] = s.subscribed(o)
	}
	return found, err
}

// Organization returns an organization that the caller may
// access, or ErrNotFound for an unknown or foreign one.
func (s *Service) Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error) {
	if !caller.CanAccess(id) || !tenants.IsID(id) {
		return tenants.Organization{}, fmt.Errorf("organization %q: %w", id, tenants.ErrNotFound)
	}
	found, err := s.store.Organization(ctx, pg.Organization(caller.Organization), id)
	return s.subscribed(found), err
}

// Rename renames an organization that the caller may access.
func (s *Service) Rename(ctx context.Context, request unitofwork.Request, id, name string) (tenants.Organization, error) {
	cmd := tenants.Rename{Name: name, At: s.work.Now()}
	if err := cmd.Check(); err != nil {
		return tenants.Organization{}, err
	}
	if _, err := s.Organization(ctx, request.Caller, id); err != nil {
		return tenants.Organization{}, err
	}
	renamed, err := unitofwork.Once(ctx, s.work, request, tenants.OrganizationWrite, unitofwork.Stream(id, "organization", id),
		func(o tenants.Organization) ([]tenants.Event, error) { return o.Rename(cmd) })
	return s.subscribed(renamed), err
}
