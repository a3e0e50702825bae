package registrar

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// NewServiceToken is what a caller says of a token that it wants.
type NewServiceToken struct {
	Organization string // tenants.Installation: for every organization
	Name         string
	Scopes       []string
}

// IssueServiceToken issues a token for an organization that the caller reaches, with no scope that the caller lacks;
// an operator may issue any, and only an operator one for the installation. The secret is in no other place.
func (r *Registrar) IssueServiceToken(ctx context.Context, request Request, wanted NewServiceToken) (tenants.ServiceToken, tenants.Secret, error) {
	cmd := tenants.IssueServiceToken{Organization: wanted.Organization, Name: wanted.Name, Scopes: wanted.Scopes, At: r.now()}
	if err := r.mayIssue(ctx, request.Caller, cmd); err != nil {
		return tenants.ServiceToken{}, tenants.Secret{}, err
	}
	secret, err := tenants.NewSecret(tenants.ServiceTokenPrefix, r.Random)
	if err != nil {
		return tenants.ServiceToken{}, tenants.Secret{}, err
	}
	cmd.ID, cmd.Digest = r.newID(request, serviceTokenPrefix, cmd.Organization), secret.Digest()
	token, err := create(ctx, r, request, mayGrant(cmd.Scopes), streamOf(cmd.Organization, "service-token", cmd.ID),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Issue(cmd) }, tenants.CountServiceTokens, tenants.CountServiceTokensKept)
	return token, secret, err
}

func (r *Registrar) mayIssue(ctx context.Context, caller tenants.Caller, cmd tenants.IssueServiceToken) error {
	if err := cmd.Check(); err != nil {
		return err
	}
	if err := r.owner(ctx, caller, cmd.Organization); err != nil {
		return err
	}
	return caller.Grants(cmd.Scopes)
}

// mayGrant is the power of the roles whose members may issue a token with scopes.
func mayGrant(scopes []string) power {
	return func(role tenants.Role) error {
		if err := may(tenants.ServiceTokensWrite)(role); err != nil {
			return err
		}
		return tenants.Caller{Scopes: role.GrantableScopes()}.Grants(scopes)
	}
}

// owner makes sure that tokens of organization, or of the installation, are the caller's business.
func (r *Registrar) owner(ctx context.Context, caller tenants.Caller, organization string) error {
	if organization == tenants.Installation && caller.Operates() {
		return nil
	}
	return r.reachable(ctx, caller, organization)
}

// RevokeServiceToken ends a token that the caller reaches.
func (r *Registrar) RevokeServiceToken(ctx context.Context, request Request, id, reason string) (tenants.ServiceToken, error) {
	cmd := tenants.Revoke{Reason: reason, At: r.now()}
	if !tenants.IsID(id) {
		return tenants.ServiceToken{}, fmt.Errorf("service token %q: %w", id, tenants.ErrNotFound)
	}
	found, err := r.Views.ServiceToken(ctx, pg.Organization(request.Caller.Organization), id)
	if err != nil {
		return tenants.ServiceToken{}, err
	}
	return update(ctx, r, request, may(tenants.ServiceTokensWrite), streamOf(found.Organization, "service-token", id),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Revoke(cmd) })
}

// ServiceTokens lists the tokens of an organization that the caller reaches, or of the installation.
func (r *Registrar) ServiceTokens(ctx context.Context, caller tenants.Caller, organization string, after query.Position,
	limit int) ([]tenants.ServiceToken, error) {
	if err := r.owner(ctx, caller, organization); err != nil {
		return nil, err
	}
	return r.Views.ServiceTokens(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}
