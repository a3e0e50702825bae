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

// Services decide about all that the room holds.
type Services struct {
	Organizations *Service
	Projects      *Projects
	Tokens        *Tokens
	Policies      *Policies
	Deletions     *Deletions
}

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

// Members counts members by how they can sign in.
type Members interface {
	// OwnersWithoutPassword is how many owners of an
	// organization can sign in without a password.
	OwnersWithoutPassword(ctx context.Context, in *query.Reader, organization pg.Organization) (int, error)
	// MembersWithoutPassword is how many members can, and how many there are.
	MembersWithoutPassword(ctx context.Context, organization pg.Organization) (able, all int, err error)
}

// Policies decides about security policies.
// Its errors are those of unitofwork.Writer.
type Policies struct {
	work          *unitofwork.Writer
	store         Store
	organizations *Service
	members       Members
}

// NewPolicies returns the policies of organizations with members.
func NewPolicies(organizations *Service, members Members) *Policies {
	return &Policies{organizations.work, organizations.store, organizations, members}
}

// NewPolicy is a requested security policy.
type NewPolicy struct {
	LeakedKeys    tenants.LeakedPolicy
	PlainHTTPKeys tenants.PlainHTTPPolicy
	PasswordsOff  *bool // nil: unchanged
}

// Policy returns the policy of an organization that the caller may access.
func (p *Policies) Policy(ctx context.Context, caller tenants.Caller, organization string) (tenants.SecurityPolicy, error) {
	if _, err := p.organizations.Organization(ctx, caller, organization); err != nil {
		return tenants.SecurityPolicy{}, err
	}
	return p.store.SecurityPolicy(ctx, pg.Organization(caller.Organization), pg.Organization(organization))
}

// Set sets the policy of an organization that the caller may access.
func (p *Policies) Set(ctx context.Context, request unitofwork.Request, organization string, wanted NewPolicy) (policy tenants.SecurityPolicy, err error) {
	cmd := tenants.SetSecurityPolicy{
		Organization: organization, LeakedKeys: wanted.LeakedKeys, PlainHTTPKeys: wanted.PlainHTTPKeys, PasswordsOff: wanted.PasswordsOff, At: p.work.Now(),
	}
	if _, err := p.organizations.Organization(ctx, request.Caller, organization); err != nil {
		return policy, err
	}
	u, err := p.work.Begin(ctx, organization, request)
	if err != nil {
		return policy, err
	}
	defer u.Rollback(ctx)
	if cmd.By, err = u.Role(ctx); err != nil {
		return policy, err
	}
	if err := unitofwork.Check(cmd.By, tenants.SecurityWrite); err != nil {
		return policy, err
	}
	if cmd.OwnersWithoutPassword, err = p.members.OwnersWithoutPassword(ctx, u.Reader(), pg.Organization(organization)); err != nil {
		return policy, err
	}
	policy, err = unitofwork.Change(ctx, u, unitofwork.Stream(organization, "security-policy", organization),
		func(p tenants.SecurityPolicy) ([]tenants.Event, error) { return p.Set(cmd) })
	if err != nil {
		return policy, err
	}
	return policy, u.Commit(ctx)
}

// AllowPasswords switches an organization's passwords
// on at the server, as its people may be locked out.
func (p *Policies) AllowPasswords(ctx context.Context, request unitofwork.Request, organization string) error {
	policy, err := p.Policy(ctx, request.Caller, organization)
	if err != nil {
		return err
	}
	on := false
	_, err = p.Set(ctx, request, organization, NewPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys, PasswordsOff: &on})
	return err
}
