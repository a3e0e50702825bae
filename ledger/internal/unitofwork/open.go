package unitofwork

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/pg"
)

// lock opens the books of a known organization that is not deleted,
// as which the transaction acts from then on.
func (w *Writer) lock(ctx context.Context, tx pgx.Tx, organization string) (*ledger.Books, error) {
	if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
		return nil, snapshot.NoOrganization(err)
	}
	o, found, err := postgres.LockOrganization(ctx, tx, organization)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books of organization %q: %w", organization, err)
	}
	deleted, err := postgres.IsDeleted(ctx, tx, organization)
	if err == nil && (!found || o.Provisional() || deleted) {
		err = ledger.ErrNoOrganization
	}
	if err != nil {
		return nil, err
	}
	opened, err := OpenWhole(ctx, tx, map[string]ledger.Organization{organization: o})
	return opened[organization], err
}

// OpenWhole opens all open books of organizations with their grants.
func OpenWhole(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization) (map[string]*ledger.Books, error) {
	books, err := postgres.LoadOpenBooks(ctx, tx, known)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	ids := make([]string, 0, len(known))
	for id := range known {
		ids = append(ids, id)
	}
	grants, err := postgres.LiveGrants(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("cannot read the grants: %w", err)
	}
	return Open(ctx, tx, known, grants, books)
}

// Open opens books with their organizations' budgets.
func Open(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization,
	grants map[string][]ledger.Grant, books map[string][]ledger.Book) (map[string]*ledger.Books, error) {
	budgets, err := postgres.LoadBudgets(ctx, tx, withBudgets(known))
	if err != nil {
		return nil, err
	}
	opened := make(map[string]*ledger.Books, len(known))
	for id, organization := range known {
		opened[id] = ledger.OpenBooks(organization, grants[id], books[id]...).WithBudgets(budgets[id])
	}
	return opened, nil
}

// withBudgets returns the organizations that have any.
func withBudgets(known map[string]ledger.Organization) (ids []string) {
	for id, organization := range known {
		if organization.Budgets > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
