package registrar

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// NewAPIKey is what a caller says of a key that it wants.
type NewAPIKey struct {
	Project     string
	Environment tenants.Environment
	Name        string
	ExpiresAt   time.Time // zero: never

	RatePerMinute int            // 0: no limit of its own
	Access        tenants.Access // empty: full
}

// IssueAPIKey issues a key for a project that the caller reaches. When it returns, the key is in force, unless the
// broker is slow or away. The secret is in no other place.
func (r *Registrar) IssueAPIKey(ctx context.Context, request Request, wanted NewAPIKey) (tenants.APIKey, tenants.Secret, error) {
	cmd := tenants.IssueAPIKey{
		Project: wanted.Project, Environment: wanted.Environment, Name: wanted.Name, ExpiresAt: wanted.ExpiresAt, At: r.now(),
		RatePerMinute: wanted.RatePerMinute, Access: wanted.Access,
	}
	if err := cmd.Check(); err != nil {
		return tenants.APIKey{}, tenants.Secret{}, err
	}
	project, err := r.project(ctx, request.Caller, wanted.Project)
	if err != nil {
		return tenants.APIKey{}, tenants.Secret{}, err
	}
	secret, err := tenants.NewSecret(tenants.APIKeyPrefix, r.Random)
	if err != nil {
		return tenants.APIKey{}, tenants.Secret{}, err
	}
	cmd.Organization, cmd.Digest, cmd.Ceiling = project.Organization, secret.Digest(), r.Ceiling(project.Organization)
	cmd.ID = r.newID(request, apiKeyPrefix, project.Organization)
	var key tenants.APIKey
	err = r.CredentialWaiter.Pass(ctx, cmd.Digest.Hash, contract.CredentialActive, func() (bool, error) {
		key, err = create(ctx, r, request, may(tenants.IssuingFor(wanted.Environment)), streamOf(project.Organization, "api-key", cmd.ID),
			func(k tenants.APIKey) ([]tenants.Event, error) { return k.Issue(cmd) }, tenants.CountAPIKeys, tenants.CountAPIKeysKept)
		return err == nil, err
	})
	return key, secret, err
}

// RevokeAPIKey ends a key that the caller reaches. When it returns, no replica that follows the broker accepts the key
// for longer than a record takes to get there.
func (r *Registrar) RevokeAPIKey(ctx context.Context, request Request, id, reason string) (tenants.APIKey, error) {
	cmd := tenants.Revoke{Reason: reason, At: r.now()}
	found, err := r.APIKey(ctx, request.Caller, id)
	if err != nil {
		return tenants.APIKey{}, err
	}
	return r.changeAPIKey(ctx, request, may(tenants.IssuingFor(found.Environment)), streamOf(found.Organization, "api-key", id),
		found.Digest.Hash, contract.CredentialRevoked, func(k tenants.APIKey) ([]tenants.Event, error) { return k.Revoke(cmd) })
}

// KeyChange is what a caller wants to be different about a key; nil: as it is.
type KeyChange struct {
	Name          *string
	RatePerMinute *int // 0: no limit of its own
	Access        *tenants.Access
}

// ChangeAPIKey renames or limits a key that the caller reaches, or lets it read more or less. When it returns, limit and access are
// in force, as after IssueAPIKey.
func (r *Registrar) ChangeAPIKey(ctx context.Context, request Request, id string, wanted KeyChange) (tenants.APIKey, error) {
	cmd := tenants.ChangeAPIKey{Name: wanted.Name, RatePerMinute: wanted.RatePerMinute, Access: wanted.Access, At: r.now()}
	found, err := r.APIKey(ctx, request.Caller, id)
	if err != nil {
		return tenants.APIKey{}, err
	}
	cmd.Ceiling = r.Ceiling(found.Organization)
	change := func() (key tenants.APIKey, told bool, err error) {
		key, err = update(ctx, r, request, may(tenants.IssuingFor(found.Environment)), streamOf(found.Organization, "api-key", id),
			func(k tenants.APIKey) ([]tenants.Event, error) { return k.Change(cmd) })
		return key, err == nil && (key.RatePerMinute != found.RatePerMinute || key.Access != found.Access), err
	}
	var key tenants.APIKey
	err = r.CredentialWaiter.Pass(ctx, found.Digest.Hash, contract.CredentialActive, func() (told bool, err error) {
		key, told, err = change()
		return told, err
	})
	return key, err
}

// APIKey returns one key that the caller reaches, or ErrNotFound.
func (r *Registrar) APIKey(ctx context.Context, caller tenants.Caller, id string) (postgres.ListedAPIKey, error) {
	if !tenants.IsID(id) {
		return postgres.ListedAPIKey{}, fmt.Errorf("API key %q: %w", id, tenants.ErrNotFound)
	}
	return r.Views.APIKey(ctx, pg.Organization(caller.Organization), id)
}

// changeAPIKey keeps a decision on a key, and waits until the credential with that hash is in state.
func (r *Registrar) changeAPIKey(ctx context.Context, request Request, has power, stream eventstore.Stream, hash, state string,
	decide func(tenants.APIKey) ([]tenants.Event, error)) (key tenants.APIKey, err error) {
	err = r.CredentialWaiter.Pass(ctx, hash, state, func() (changed bool, err error) {
		key, err = update(ctx, r, request, has, stream, func(before tenants.APIKey) ([]tenants.Event, error) {
			events, err := decide(before)
			changed = len(events) > 0
			return events, err
		})
		return changed, err
	})
	return key, err
}

// APIKeys lists the keys of a project that the caller reaches.
func (r *Registrar) APIKeys(ctx context.Context, caller tenants.Caller, project string, after postgres.Position, limit int) ([]postgres.ListedAPIKey, error) {
	of, err := r.project(ctx, caller, project)
	if err != nil {
		return nil, err
	}
	return r.Views.APIKeys(ctx, pg.Organization(caller.Organization), of, after, limit)
}

// APIKeysOf lists the keys of all projects of an organization that the caller reaches.
func (r *Registrar) APIKeysOf(ctx context.Context, caller tenants.Caller, organization string, after postgres.Position,
	limit int) ([]postgres.ListedAPIKey, error) {
	if err := r.reachable(ctx, caller, organization); err != nil {
		return nil, err
	}
	return r.Views.APIKeys(ctx, pg.Organization(caller.Organization), tenants.Project{Organization: organization}, after, limit)
}

// KeyUsers lists who has used a key that the caller reaches lately, the last one first.
func (r *Registrar) KeyUsers(ctx context.Context, caller tenants.Caller, id string) ([]tenants.KeyUser, error) {
	return r.Views.KeyUsers(ctx, pg.Organization(caller.Organization), id)
}
