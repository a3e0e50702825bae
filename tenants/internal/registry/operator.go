package registry

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
