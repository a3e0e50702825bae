package keys

import (
	"context"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
