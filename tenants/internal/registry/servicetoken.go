package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Tokens decides about service tokens. Its errors are those of unitofwork.Writer.
type Tokens struct {
	work          *unitofwork.Writer
	store         Store
	organizations *Service
}

// NewTokens returns the tokens of organizations.
func NewTokens(organizations *Service) *Tokens {
	return &Tokens{organizations.work, organizations.store, organizations}
}

// NewToken is a requested token.
type NewToken struct {
	Organization string // tenants.Installation: for every organization
	Name         string
	Scopes       []string
}

// Issue issues a token for an organization that the caller may access,
// with scopes that the caller has. An operator may grant any, and
// alone issues for the installation. The secret is stored nowhere.
func (t *Tokens) Issue(ctx context.Context, request unitofwork.Request, wanted NewToken) (token tenants.ServiceToken, secret tenants.Secret, err error) {
	cmd := tenants.IssueServiceToken{Organization: wanted.Organization, Name: wanted.Name, Scopes: wanted.Scopes, At: t.work.Now()}
	if err := t.mayIssue(ctx, request.Caller, cmd); err != nil {
		return token, secret, err
	}
	if cmd.ID, secret, err = t.work.Draw(request, serviceTokenPrefix, cmd.Organization, tenants.ServiceTokenPrefix); err != nil {
		return token, secret, err
	}
	cmd.Digest = secret.Digest()
	token, err = t.issue(ctx, request, cmd)
	return token, secret, err
}

func (t *Tokens) issue(ctx context.Context, request unitofwork.Request, cmd tenants.IssueServiceToken) (token tenants.ServiceToken, err error) {
	u, err := t.work.Begin(ctx, cmd.Organization, request)
	if err != nil {
		return token, err
	}
	defer u.Rollback(ctx)
	if err := mayGrant(ctx, u, cmd.Scopes); err != nil {
		return token, err
	}
	token, err = unitofwork.Create(ctx, u, tokenStream(cmd.Organization, cmd.ID),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Issue(cmd) }, counted(tenants.CountServiceTokens, tenants.CountServiceTokensKept))
	if err != nil {
		return token, err
	}
	return token, u.Commit(ctx)
}

func (t *Tokens) mayIssue(ctx context.Context, caller tenants.Caller, cmd tenants.IssueServiceToken) error {
	if err := cmd.Check(); err != nil {
		return err
	}
	if err := t.checkAccess(ctx, caller, cmd.Organization); err != nil {
		return err
	}
	return caller.CheckGrant(cmd.Scopes)
}

// mayGrant refuses a member who may not issue a token with these scopes now.
func mayGrant(ctx context.Context, u *unitofwork.Unit, scopes []string) error {
	if err := u.Require(ctx, tenants.ServiceTokensWrite); err != nil || u.Request().Role == "" {
		return err
	}
	return tenants.Caller{Scopes: u.Request().Role.GrantableScopes()}.CheckGrant(scopes)
}

// checkAccess refuses a caller who may not access the
// tokens of organization, or of the installation.
func (t *Tokens) checkAccess(ctx context.Context, caller tenants.Caller, organization string) error {
	if organization == tenants.Installation && caller.IsOperator() {
		return nil
	}
	_, err := t.organizations.Organization(ctx, caller, organization)
	return err
}

// Token returns a token that the caller may access, or ErrNotFound.
func (t *Tokens) Token(ctx context.Context, caller tenants.Caller, id string) (tenants.ServiceToken, error) {
	if !tenants.IsID(id) {
		return tenants.ServiceToken{}, fmt.Errorf("service token %q: %w", id, tenants.ErrNotFound)
	}
	return t.store.ServiceToken(ctx, pg.Organization(caller.Organization), id)
}

// Revoke ends a token that the caller may access.
func (t *Tokens) Revoke(ctx context.Context, request unitofwork.Request, id, reason string) (tenants.ServiceToken, error) {
	cmd := tenants.Revoke{Reason: reason, At: t.work.Now()}
	found, err := t.Token(ctx, request.Caller, id)
	if err != nil {
		return tenants.ServiceToken{}, err
	}
	return unitofwork.Once(ctx, t.work, request, tenants.ServiceTokensWrite, tokenStream(found.Organization, id),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Revoke(cmd) })
}

// List lists the tokens of an organization that
// the caller may access, or of the installation.
func (t *Tokens) List(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.ServiceToken, error) {
	if err := t.checkAccess(ctx, caller, organization); err != nil {
		return nil, err
	}
	return t.store.ServiceTokens(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// Capacity is how many tokens the caller's organization has, and may have.
func (t *Tokens) Capacity(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error) {
	return t.work.Capacity(ctx, caller, tenants.CountServiceTokens, count)
}

func tokenStream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "service-token", id)
}

// ErrOperatorRevoked means that the configured operator's
// token was revoked. A restart does not restore it.
var ErrOperatorRevoked = errors.New("the configured operator token was revoked: configure another one")

// RegisterOperator registers the configured operator's
// token, once, and revokes the one that it replaces.
func (t *Tokens) RegisterOperator(ctx context.Context, secret tenants.Secret) error {
	digest := secret.Digest()
	cmd := tenants.IssueServiceToken{
		ID: serviceTokenPrefix + "operator_" + digest.Hash[:16], Organization: tenants.Installation,
		Name: "Operator (from the configuration)", Scopes: unitofwork.OperatorScopes(), Digest: digest, At: t.work.Now(),
	}
	token, err := t.configure(ctx, tokenStream(cmd.Organization, cmd.ID),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Register(cmd) })
	if err != nil {
		return err
	}
	if token.State() == tenants.Revoked {
		return ErrOperatorRevoked
	}
	return t.replaceOperators(ctx, cmd.ID)
}

// configure stores a decision on a configured token. It does
// not wait: nothing is published before the process runs.
func (t *Tokens) configure(ctx context.Context, stream eventstore.Stream, decide func(tenants.ServiceToken) ([]tenants.Event, error)) (
	token tenants.ServiceToken, err error) {
	u, err := t.work.Begin(ctx, stream.Organization, unitofwork.ByConfiguration())
	if err != nil {
		return token, err
	}
	defer u.Rollback(ctx)
	if token, err = unitofwork.Change(ctx, u, stream, decide); err != nil {
		return token, err
	}
	return token, u.CommitNoWait(ctx)
}

// replaceOperators revokes configured tokens other than the present one.
func (t *Tokens) replaceOperators(ctx context.Context, id string) error {
	configured, err := t.store.Configured(ctx)
	if err != nil {
		return err
	}
	cmd := tenants.Revoke{Reason: "replaced in the configuration by " + id, At: t.work.Now()}
	for _, token := range configured {
		if token.ID == id {
			continue
		}
		_, err := t.configure(ctx, tokenStream(tenants.Installation, token.ID),
			func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Revoke(cmd) })
		if err != nil {
			return err
		}
	}
	return nil
}
