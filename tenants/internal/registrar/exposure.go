package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// Parts of the system that decide by themselves what becomes of an exposed key.
const (
	byIngest     = "ingest"
	byLeakReport = "leak-report"
)

// Exposed decides in tx what follows when ingest has seen a key in clear. A key that nobody knows is passed over: ingest
// knows keys from us alone, so it is one of another installation's log.
func (r *Registrar) Exposed(ctx context.Context, tx pgx.Tx, organization, key string, exposure tenants.Exposure) error {
	if err := eventstorepg.TakeTurn(ctx, tx); err != nil {
		return err
	}
	err := r.expose(ctx, tx, organization, key, bySystem(byIngest), exposure)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil
	}
	return err
}

// expose decides by the policy that the organization has now.
func (r *Registrar) expose(ctx context.Context, tx pgx.Tx, organization, key string, by eventstore.Metadata, exposure tenants.Exposure) error {
	if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
		return err
	}
	history, err := r.Events.ReadTx(ctx, tx, policyStream(organization))
	if err != nil {
		return err
	}
	policy := tenants.DefaultSecurityPolicy(organization)
	if len(history) > 0 {
		policy = eventstore.Fold[tenants.SecurityPolicy](history)
	}
	exposure.At = r.now() // what follows happens now
	_, _, err = eventstorepg.UpdateTx(ctx, tx, r.Events, streamOf(organization, "api-key", key), by,
		func(k tenants.APIKey) ([]tenants.Event, error) {
			return k.Expose(tenants.ExposeAPIKey{Exposure: exposure, Policy: policy})
		})
	return err
}

// A Leak says where a secret was found.
type Leak struct {
	Hash   string // contract.CredentialKey of what was found
	Where  string // address of the page
	Source string // what kind of page
}

// ReportLeak decides what follows when a secret was found in public, and tells whether it is, or was, an API key. It does not
// wait until that is in force: a report may tell of thousands, and who reports does not act on it.
func (r *Registrar) ReportLeak(ctx context.Context, leak Leak) (isKey bool, err error) {
	found, err := r.Views.APIKeyByHash(ctx, leak.Hash)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	exposure := tenants.Exposure{Kind: tenants.ExposedLeaked, Where: leak.Where, Source: leak.Source}
	err = r.Events.InTurn(ctx, found.Organization, func(tx pgx.Tx) error {
		return r.expose(ctx, tx, found.Organization, found.ID, bySystem(byLeakReport), exposure)
	})
	r.CredentialWaiter.Wake()
	if err != nil {
		return true, fmt.Errorf("cannot act on the leak of key %q: %w", found.ID, err)
	}
	return true, nil
}
