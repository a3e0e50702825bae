package registrar

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/tenants"
)

// A Rotation is a key and the one that takes its place.
type Rotation struct {
	Old, New tenants.APIKey
	Secret   tenants.Secret // of the new one; in no other place
}

// RotateAPIKey puts a new key in the place of one that the caller reaches, which goes on for the overlap. Both happen or
// neither. When it returns, both are in force as they are then, unless the broker is slow or away.
func (r *Registrar) RotateAPIKey(ctx context.Context, request Request, id string, overlap time.Duration) (rotation Rotation, err error) {
	found, err := r.APIKey(ctx, request.Caller, id)
	if err != nil {
		return rotation, err
	}
	if rotation.Secret, err = tenants.NewSecret(tenants.APIKeyPrefix, r.Random); err != nil {
		return rotation, err
	}
	cmd := tenants.RotateAPIKey{
		To: r.newID(request, apiKeyPrefix, found.Organization+"\n"+id), Digest: rotation.Secret.Digest(), Overlap: overlap, At: r.now(),
	}
	err = r.bothInForce(ctx, found.Digest.Hash, cmd.Digest.Hash, func() error {
		return r.Events.InTurn(ctx, found.Organization, func(tx pgx.Tx) (err error) {
			rotation.Old, rotation.New, err = r.rotate(ctx, tx, request, found.APIKey, cmd)
			return err
		})
	})
	return rotation, err
}

// bothInForce makes a change, and waits until the credentials of two active keys have come back from the broker.
func (r *Registrar) bothInForce(ctx context.Context, first, second string, change func() error) error {
	return r.CredentialWaiter.Pass(ctx, first, contract.CredentialActive, func() (bool, error) {
		err := r.CredentialWaiter.Pass(ctx, second, contract.CredentialActive, func() (bool, error) {
			err := change()
			return err == nil, err
		})
		return err == nil, err
	})
}

// rotate issues the successor first: a request that comes again meets it, and fails with ErrShownOnce instead of finding
// the old key rotated.
func (r *Registrar) rotate(ctx context.Context, tx pgx.Tx, request Request, found tenants.APIKey, cmd tenants.RotateAPIKey) (
	old, successor tenants.APIKey, err error) {
	if err := cmd.Check(); err != nil {
		return old, successor, err
	}
	request, err = r.inForce(ctx, tx, request, may(tenants.IssuingFor(found.Environment)))
	if err != nil {
		return old, successor, err
	}
	successor, _, err = eventstorepg.UpdateTx(ctx, tx, r.Events, streamOf(found.Organization, "api-key", cmd.To), request.metadata(),
		func(k tenants.APIKey) ([]tenants.Event, error) {
			events, err := k.Issue(found.Successor(cmd))
			if err != nil {
				return nil, err
			}
			// a key that may have leaked can be rotated also where there are as many as there may be
			return events, r.room(ctx, r.Views.In(tx), found.Organization, tenants.CountAPIKeysKept)
		})
	if err != nil {
		return old, successor, err
	}
	old, _, err = eventstorepg.UpdateTx(ctx, tx, r.Events, streamOf(found.Organization, "api-key", found.ID), request.metadata(),
		func(k tenants.APIKey) ([]tenants.Event, error) { return k.Rotate(cmd) })
	return old, successor, err
}
