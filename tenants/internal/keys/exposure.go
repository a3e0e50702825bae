package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Parts of the system that decide on exposed keys.
const (
	byIngest     = "ingest"
	byLeakReport = "leak-report"
)

// PolicyOf finds an organization's present security policy.
type PolicyOf func(ctx context.Context, in *query.Reader, organization pg.Organization) (tenants.SecurityPolicy, error)

// Exposures decides what follows when a key is exposed.
type Exposures struct {
	work     *unitofwork.Writer
	store    Store
	policyOf PolicyOf
}

// NewExposures returns exposures decided by a policy.
func NewExposures(work *unitofwork.Writer, policyOf PolicyOf) *Exposures {
	return &Exposures{work, NewStore(work.Views), policyOf}
}

// SeenInPlaintext decides in tx on a key received in plaintext.
// It ignores an unknown key, of another installation's log.
func (e *Exposures) SeenInPlaintext(ctx context.Context, tx pgx.Tx, organization, key string, exposure tenants.Exposure) error {
	u, err := e.work.Join(ctx, tx, organization, unitofwork.BySystem(byIngest))
	if err != nil {
		return err
	}
	if err := e.expose(ctx, u, organization, key, exposure); !errors.Is(err, tenants.ErrNotFound) {
		return err
	}
	return nil
}

// expose decides by the organization's present policy.
func (e *Exposures) expose(ctx context.Context, u *unitofwork.Unit, organization, key string, exposure tenants.Exposure) error {
	policy, err := e.policyOf(ctx, u.Reader(), pg.Organization(organization))
	if err != nil {
		return err
	}
	exposure.At = e.work.Now() // what follows happens now
	_, err = unitofwork.Change(ctx, u, stream(organization, key), func(k tenants.APIKey) ([]tenants.Event, error) {
		return k.Expose(tenants.ExposeAPIKey{Exposure: exposure, Policy: policy})
	})
	return err
}

// A Leak is where a secret was found.
type Leak struct {
	Hash   string // contract.CredentialKey of the found secret
	Where  string // address of the page
	Source string // kind of page
}

// Leaked decides on a secret found in public, and reports
// whether it is, or was, an API key. It does not wait
// until that is in force: a report may have thousands.
func (e *Exposures) Leaked(ctx context.Context, leak Leak) (isKey bool, err error) {
	found, err := e.store.ByHash(ctx, leak.Hash)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := e.leaked(ctx, found, leak); err != nil {
		return true, fmt.Errorf("cannot act on the leak of key %q: %w", found.ID, err)
	}
	return true, nil
}

func (e *Exposures) leaked(ctx context.Context, found Listed, leak Leak) error {
	u, err := e.work.Begin(ctx, found.Organization, unitofwork.BySystem(byLeakReport))
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	exposure := tenants.Exposure{Kind: tenants.ExposedLeaked, Where: leak.Where, Source: leak.Source}
	if err := e.expose(ctx, u, found.Organization, found.ID, exposure); err != nil {
		return err
	}
	return u.CommitNoWait(ctx)
}
