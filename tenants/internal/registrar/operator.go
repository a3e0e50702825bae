package registrar

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
)

// operatorScopes are what the configured operator's token may do. It could issue itself a token with any scope, so it
// is given at once what an operator needs.
func operatorScopes() []string {
	return []string{"tenants:admin", "billing:read", "billing:write"}
}

// ErrOperatorRevoked says that the configured operator's token was revoked, and that a restart does not bring it back.
var ErrOperatorRevoked = errors.New("the configured operator token was revoked: configure another one")

// RegisterOperator makes the operator's token of the configuration known, once, and revokes the one that it replaces.
func (r *Registrar) RegisterOperator(ctx context.Context, secret tenants.Secret) error {
	digest := secret.Digest()
	cmd := tenants.IssueServiceToken{
		ID: serviceTokenPrefix + "operator_" + digest.Hash[:16], Organization: tenants.Installation,
		Name: "Operator (from the configuration)", Scopes: operatorScopes(), Digest: digest, At: r.now(),
	}
	token, err := eventstore.Update(ctx, r.Events, streamOf(cmd.Organization, "service-token", cmd.ID), byConfiguration(),
		func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Register(cmd) })
	if err != nil {
		return err
	}
	if token.State() == tenants.Revoked {
		return ErrOperatorRevoked
	}
	return r.replaceOperators(ctx, cmd.ID)
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
		_, err := eventstore.Update(ctx, r.Events, streamOf(tenants.Installation, "service-token", token.ID), byConfiguration(),
			func(s tenants.ServiceToken) ([]tenants.Event, error) { return s.Revoke(cmd) })
		if err != nil {
			return err
		}
	}
	return nil
}
