package grants

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
)

// List lists what an organization may use, or might, beside its
// plan, the latest first.
func (s *Service) List(ctx context.Context, organization string, after postgres.GrantCursor, limit int) (found []ledger.Grant, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Grants(ctx, tx, organization, after, limit)
		return err
	})
	return found, err
}

// Grant gives an organization a grant. Of the spec only what a
// caller may choose is looked at.
func (s *Service) Grant(ctx context.Context, organization string, request unitofwork.Request, spec ledger.Grant) (ledger.Grant, error) {
	id := "grt_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		decision, err := books.Grant(spec, id, at)
		return []ledger.Decision{decision}, err
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, spec, choose, func(tx pgx.Tx, _ *ledger.Books, _ time.Time) (ledger.Grant, error) {
		return postgres.LoadGrant(ctx, tx, pg.Organization(organization), id)
	})
}

// voiding is the input of a request to take back a grant.
type voiding struct{ Grant string }

// InputName is that of before the type was moved.
func (voiding) InputName() string { return "service.voiding" }

// Void takes back what is left of a grant. One of which nothing
// is left stays as it is.
func (s *Service) Void(ctx context.Context, organization string, request unitofwork.Request, id string) (ledger.Grant, error) {
	choose := func(_ pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		return books.Void(id), nil
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, voiding{id}, choose, func(tx pgx.Tx, _ *ledger.Books, _ time.Time) (ledger.Grant, error) {
		return postgres.LoadGrant(ctx, tx, pg.Organization(organization), id)
	})
}
