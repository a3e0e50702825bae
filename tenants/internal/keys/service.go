package keys

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const idPrefix = "key_"

// Organizations finds organizations that a caller may access.
type Organizations interface {
	Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error)
}

// Projects finds projects that a caller may access.
type Projects interface {
	Project(ctx context.Context, caller tenants.Caller, id string) (tenants.Project, error)
	ProjectIn(ctx context.Context, u *unitofwork.Unit, organization, id string) (tenants.Project, error)
	List(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.Project, error)
}

// A Service decides about API keys. Its
// errors are those of unitofwork.Writer.
type Service struct {
	work          *unitofwork.Writer
	store         Store
	organizations Organizations
	projects      Projects
	ceiling       func(organization string) int
}

// NewService returns a service. ceiling is an
// organization's requests per minute; 0: unknown.
func NewService(work *unitofwork.Writer, organizations Organizations, projects Projects, ceiling func(organization string) int) *Service {
	return &Service{work, NewStore(work.Views), organizations, projects, ceiling}
}

// Issue issues a key for a project that the caller may access,
// as cmd requires. It is in force on return, unless the broker
// is slow or unavailable. The secret is stored nowhere.
func (s *Service) Issue(ctx context.Context, request unitofwork.Request, cmd tenants.IssueAPIKey) (key tenants.APIKey, secret tenants.Secret, err error) {
	cmd.At = s.work.Now()
	if err := cmd.Check(); err != nil {
		return key, secret, err
	}
	project, err := s.projects.Project(ctx, request.Caller, cmd.Project)
	if err != nil {
		return key, secret, err
	}
	if cmd.ID, secret, err = s.work.Draw(request, idPrefix, project.Organization, tenants.APIKeyPrefix); err != nil {
		return key, secret, err
	}
	cmd.Organization, cmd.Digest, cmd.Ceiling = project.Organization, secret.Digest(), s.ceiling(project.Organization)
	key, err = s.issue(ctx, request, cmd)
	return key, secret, err
}

func (s *Service) issue(ctx context.Context, request unitofwork.Request, cmd tenants.IssueAPIKey) (key tenants.APIKey, err error) {
	u, err := s.begin(ctx, request, tenants.Project{ID: cmd.Project, Organization: cmd.Organization}, cmd.Environment)
	if err != nil {
		return key, err
	}
	defer u.Rollback(ctx)
	key, err = unitofwork.Create(ctx, u, stream(cmd.Organization, cmd.ID),
		func(k tenants.APIKey) ([]tenants.Event, error) { return k.Issue(cmd) }, counted(tenants.CountAPIKeys, tenants.CountAPIKeysKept))
	if err != nil {
		return key, err
	}
	return key, u.Commit(ctx)
}

// begin opens a unit of work for a new key of a project. It
// checks the project again, now without concurrent decisions:
// nothing would erase a key issued after a deletion.
func (s *Service) begin(ctx context.Context, request unitofwork.Request, project tenants.Project, of tenants.Environment) (*unitofwork.Unit, error) {
	u, err := s.work.Begin(ctx, project.Organization, request)
	if err != nil {
		return nil, err
	}
	if err = u.Require(ctx, tenants.IssuePermission(of)); err == nil {
		_, err = s.projects.ProjectIn(ctx, u, project.Organization, project.ID)
	}
	if err != nil {
		u.Rollback(ctx)
		return nil, err
	}
	return u, nil
}

// Revoke ends a key that the caller may
// access, everywhere once the broker has it.
func (s *Service) Revoke(ctx context.Context, request unitofwork.Request, id, reason string) (tenants.APIKey, error) {
	cmd := tenants.Revoke{Reason: reason, At: s.work.Now()}
	found, err := s.Key(ctx, request.Caller, id)
	if err != nil {
		return tenants.APIKey{}, err
	}
	return unitofwork.Once(ctx, s.work, request, tenants.IssuePermission(found.Environment), stream(found.Organization, id),
		func(k tenants.APIKey) ([]tenants.Event, error) { return k.Revoke(cmd) })
}

// Change changes the settings of a key that
// the caller may access, in force as after Issue.
func (s *Service) Change(ctx context.Context, request unitofwork.Request, id string, wanted tenants.KeySettings) (tenants.APIKey, error) {
	cmd := tenants.ChangeAPIKey{KeySettings: wanted, At: s.work.Now()}
	found, err := s.Key(ctx, request.Caller, id)
	if err != nil {
		return tenants.APIKey{}, err
	}
	cmd.Ceiling = s.ceiling(found.Organization)
	return unitofwork.Once(ctx, s.work, request, tenants.IssuePermission(found.Environment), stream(found.Organization, id),
		func(k tenants.APIKey) ([]tenants.Event, error) { return k.Change(cmd) })
}

// Key returns one key that the caller may access, or ErrNotFound.
func (s *Service) Key(ctx context.Context, caller tenants.Caller, id string) (Listed, error) {
	if !tenants.IsID(id) {
		return Listed{}, fmt.Errorf("API key %q: %w", id, tenants.ErrNotFound)
	}
	return s.store.Key(ctx, pg.Organization(caller.Organization), id)
}

// OfProject lists the keys of a project that the caller may access.
func (s *Service) OfProject(ctx context.Context, caller tenants.Caller, project string, after query.Position, limit int) ([]Listed, error) {
	of, err := s.projects.Project(ctx, caller, project)
	if err != nil {
		return nil, err
	}
	return s.store.List(ctx, pg.Organization(caller.Organization), of, after, limit)
}

// OfOrganization lists the keys of all projects
// of an organization that the caller may access.
func (s *Service) OfOrganization(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]Listed, error) {
	if _, err := s.organizations.Organization(ctx, caller, organization); err != nil {
		return nil, err
	}
	return s.store.List(ctx, pg.Organization(caller.Organization), tenants.Project{Organization: organization}, after, limit)
}

// Users lists recent users of a key that the
// caller may access, the last one first.
func (s *Service) Users(ctx context.Context, caller tenants.Caller, id string) ([]tenants.KeyUser, error) {
	return s.store.Users(ctx, pg.Organization(caller.Organization), id)
}

// Capacity is how many keys the caller's organization has, and may have.
func (s *Service) Capacity(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error) {
	return s.work.Capacity(ctx, caller, tenants.CountAPIKeys, count)
}

func counted(as ...tenants.Countable) unitofwork.Counted {
	return unitofwork.Counted{Count: count, As: as}
}

func stream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "api-key", id)
}

// A Rotation is a key and its successor.
type Rotation struct {
	Old, New tenants.APIKey
	Secret   tenants.Secret // of the successor; stored nowhere
}

// Rotate replaces a key that the caller may access; the old one
// still works for the overlap. Both changes happen or none, and are
// in force on return, unless the broker is slow or unavailable.
func (s *Service) Rotate(ctx context.Context, request unitofwork.Request, id string, overlap time.Duration) (rotation Rotation, err error) {
	found, err := s.Key(ctx, request.Caller, id)
	if err != nil {
		return rotation, err
	}
	cmd := tenants.RotateAPIKey{Overlap: overlap, At: s.work.Now()}
	if cmd.To, rotation.Secret, err = s.work.Draw(request, idPrefix, found.Organization+"\n"+id, tenants.APIKeyPrefix); err != nil {
		return rotation, err
	}
	cmd.Digest = rotation.Secret.Digest()
	if err := cmd.Check(); err != nil {
		return rotation, err
	}
	u, err := s.begin(ctx, request, tenants.Project{ID: found.Project, Organization: found.Organization}, found.Environment)
	if err != nil {
		return rotation, err
	}
	defer u.Rollback(ctx)
	if rotation.Old, rotation.New, err = rotateInto(ctx, u, found.APIKey, cmd); err != nil {
		return rotation, err
	}
	return rotation, u.Commit(ctx)
}

// rotateInto decides on the new key first, so that a repeated request
// fails with ErrShownOnce instead of finding the old key rotated. A
// key that may have leaked can be rotated even at the limit of keys.
func rotateInto(ctx context.Context, u *unitofwork.Unit, found tenants.APIKey, cmd tenants.RotateAPIKey) (old, successor tenants.APIKey, err error) {
	successor, err = unitofwork.Create(ctx, u, stream(found.Organization, cmd.To),
		func(k tenants.APIKey) ([]tenants.Event, error) { return k.Issue(found.Successor(cmd)) }, counted(tenants.CountAPIKeysKept))
	if err != nil {
		return old, successor, err
	}
	old, err = unitofwork.Change(ctx, u, stream(found.Organization, found.ID),
		func(k tenants.APIKey) ([]tenants.Event, error) { return k.Rotate(cmd) })
	return old, successor, err
}
