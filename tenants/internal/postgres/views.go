package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// Views answers questions about what is there now. Every question is asked as an organization and sees no other, or as
// tenants.Installation and sees all.
type Views struct {
	pool *pgxpool.Pool
	tx   pgx.Tx // not nil: every question is asked in it
}

// NewViews returns the views of a pool's schema.
func NewViews(pool *pgxpool.Pool) *Views {
	return &Views{pool: pool}
}

// In returns the views as a transaction sees them, which acts as those who ask or as the system.
func (v *Views) In(tx pgx.Tx) *Views {
	return &Views{pool: v.pool, tx: tx}
}

// A Position is a place in a list, which goes from old to new.
type Position struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// read runs fn in a read-only transaction that acts as organization.
func (v *Views) read(ctx context.Context, organization pg.Organization, fn func(tx pgx.Tx) error) error {
	if v.tx != nil {
		return fn(v.tx)
	}
	if organization != tenants.Installation {
		return pg.ReadAs(ctx, v.pool, organization, fn)
	}
	return pgx.BeginTxFunc(ctx, v.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// visible is what a query says itself about whose rows it may see, beside row level security: $1 is the organization that asks. A
// query that leaves $1 out is refused by Postgres.
const visible = `(organization = $1 OR $1 = '*')`

// one returns the only row that a query finds, or ErrNotFound.
func one[T any](ctx context.Context, v *Views, organization pg.Organization, scan pgx.RowToFunc[T], query string, args ...any) (T, error) {
	found, err := list(ctx, v, organization, scan, query, args...)
	if err == nil && len(found) == 0 {
		err = tenants.ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// list returns the rows that a query finds. Its $1 is the organization that asks, args are what comes after.
func list[T any](ctx context.Context, v *Views, organization pg.Organization, scan pgx.RowToFunc[T], query string, args ...any) (found []T, err error) {
	err = v.read(ctx, organization, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, query, append([]any{organization}, args...)...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("cannot ask as organization %q: %w", organization, err)
	}
	return found, err
}

// exactlyOne fails unless a statement changed one row: the tables have lost touch with the events otherwise.
func exactlyOne(ctx context.Context, tx pgx.Tx, statement string, args ...any) error {
	tag, err := tx.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%d rows changed instead of one", tag.RowsAffected())
	}
	return err
}
