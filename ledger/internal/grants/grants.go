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

// A Service adds grants to organizations and adjusts their usage.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
}

// List lists an organization's grants, the latest first.
func (s *Service) List(ctx context.Context, organization string, after postgres.GrantCursor, limit int) ([]ledger.Grant, error) {
	return snapshot.Of(ctx, s.Reads, organization, func(tx pgx.Tx, organization pg.Organization) ([]ledger.Grant, error) {
		return postgres.Grants(ctx, tx, organization, after, limit)
	})
}

// Grant adds a grant to an organization. It reads only those fields of
// spec that a caller may set.
func (s *Service) Grant(ctx context.Context, organization string, request unitofwork.Request, spec ledger.Grant) (ledger.Grant, error) {
	id := "grt_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		decision, err := books.Grants.Add(spec, id, at)
		return []ledger.Decision{decision}, err
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, spec, choose, func(tx pgx.Tx, _ *ledger.Books, _ time.Time) (ledger.Grant, error) {
		return postgres.LoadGrant(ctx, tx, pg.Organization(organization), id)
	})
}

// voidInput is the input of a request to void a grant.
type voidInput struct{ Grant string }

// Void takes back what is left of a grant, but not of an adjustment. A
// used up one stays as it is.
func (s *Service) Void(ctx context.Context, organization string, request unitofwork.Request, id string) (ledger.Grant, error) {
	load := func(tx pgx.Tx) (ledger.Grant, error) {
		return postgres.LoadGrant(ctx, tx, pg.Organization(organization), id)
	}
	choose := func(tx pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		grant, err := load(tx)
		if err != nil {
			return nil, err
		}
		return books.Grants.Void(grant)
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, voidInput{id}, choose, func(tx pgx.Tx, _ *ledger.Books, _ time.Time) (ledger.Grant, error) {
		return load(tx)
	})
}

// An Adjustment is a correction and its transfers.
type Adjustment struct {
	ID           string
	Organization string
	Bytes        int64 // credited; negative: charged
	Reason       string
	Of           time.Time // start of the corrected period; zero: that of At
	At           time.Time
	Transfers    []ledger.Transfer
}

// adjustInput is the input of a request to adjust.
type adjustInput struct {
	Bytes  int64
	Reason string
	Of     time.Time
}

// Adjust credits bytes to an organization; negative bytes are charged.
// of is any instant of the wrong period; zero: the running one.
func (s *Service) Adjust(ctx context.Context, organization string, request unitofwork.Request, bytes int64, reason string, of time.Time) (Adjustment, error) {
	id := "adj_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		decision, err := books.Adjust(bytes, reason, id, of, at)
		return []ledger.Decision{decision}, err
	}
	answer := func(_ pgx.Tx, books *ledger.Books, at time.Time) (Adjustment, error) {
		made := Adjustment{ID: id, Organization: organization, Bytes: bytes, Reason: reason, At: at, Transfers: books.Transfers}
		made.Of = books.Transfers[len(books.Transfers)-1].Of
		return made, nil
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, adjustInput{bytes, reason, of}, choose, answer)
}
