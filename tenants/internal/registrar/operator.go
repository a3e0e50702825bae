package registrar

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// ErrOperatorRevoked says that the configured operator's token was revoked, and that a restart does not bring it back.
var ErrOperatorRevoked = errors.New("the configured operator token was revoked: configure another one")

// RegisterOperator makes the operator's token of the configuration known, once, and revokes the one that it replaces.
func (r *Registrar) RegisterOperator(ctx context.Context, secret tenants.Secret) error {
	digest := secret.Digest()
	cmd := tenants.IssueServiceToken{
		ID: serviceTokenPrefix + "operator_" + digest.Hash[:16], Organization: tenants.Installation,
		Name: "Operator (from the configuration)", Scopes: unitofwork.OperatorScopes(), Digest: digest, At: r.now(),
	}
	token, err := r.configure(ctx, streamOf(cmd.Organization, "service-token", cmd.ID),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Register(cmd) })
	if err != nil {
		return err
	}
	if token.State() == tenants.Revoked {
		return ErrOperatorRevoked
	}
	return r.replaceOperators(ctx, cmd.ID)
}

// configure keeps a decision on a token of the configuration. It does not wait: nothing is published before the process runs.
func (r *Registrar) configure(ctx context.Context, stream eventstore.Stream, decide func(tenants.ServiceToken) ([]tenants.Event, error)) (
	token tenants.ServiceToken, err error) {
	u, err := r.Begin(ctx, stream.Organization, unitofwork.ByConfiguration())
	if err != nil {
		return token, err
	}
	defer u.Rollback(ctx)
	if token, err = unitofwork.Change(ctx, u, stream, decide); err != nil {
		return token, err
	}
	return token, u.Keep(ctx)
}

// replaceOperators revokes the configured tokens other than the one that is configured now.
func (r *Registrar) replaceOperators(ctx context.Context, id string) error {
	configured, err := r.Views.Configured(ctx)
	if err != nil {
		return err
	}
	cmd := tenants.Revoke{Reason: "replaced in the configuration by " + id, At: r.now()}
	for _, token := range configured {
		if token.ID == id {
			continue
		}
		_, err := r.configure(ctx, streamOf(tenants.Installation, "service-token", token.ID),
			func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Revoke(cmd) })
		if err != nil {
			return err
		}
	}
	return nil
}
