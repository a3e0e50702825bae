package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/tenants"
)

// A Reader reads as an organization, which sees only its
// own rows, or as tenants.Installation, which sees all.
type Reader struct {
	pool    *pgxpool.Pool
	limiter *httpapi.Limiter // nil: nobody waits for one
	tx      pgx.Tx           // not nil: every question is asked in it

	replica *replica.Reader // nil: the pool answers
}

// NewReader returns the reader of a pool's schema.
func NewReader(pool *pgxpool.Pool) *Reader {
	return &Reader{pool: pool}
}

// Limited returns a reader in which
// organizations that call over HTTP take turns.
func (r *Reader) Limited(limiter *httpapi.Limiter) *Reader {
	return &Reader{pool: r.pool, limiter: limiter}
}

// From returns a reader that uses a replica where it can.
func (r *Reader) From(replica *replica.Reader) *Reader {
	return &Reader{pool: r.pool, limiter: r.limiter, tx: r.tx, replica: replica}
}

// In returns the reader of a transaction, which acts as the
// reader's organization or as the system.
func (r *Reader) In(tx pgx.Tx) *Reader {
	return &Reader{tx: tx}
}

// A Position is a place in a list, which is sorted from old to new.
type Position struct {
	At time.Time `json:"at"`
	ID string    `json:"id"`
}

// read runs fn in a read-only transaction that acts as organization.
func (r *Reader) read(ctx context.Context, organization pg.Organization, fn func(tx pgx.Tx) error) error {
	if r.tx != nil {
		return fn(r.tx)
	}
	release, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer release()
	return r.replica.Snapshot(ctx, r.pool, func(tx pgx.Tx) error {
		if err := act(ctx, tx, organization); err != nil {
			return err
		}
		return fn(tx)
	})
}

// act restricts the transaction to an organization's rows.
func act(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
	if organization == tenants.Installation {
		return pg.AsSystem(ctx, tx)
	}
	return pg.AsOrganization(ctx, tx, organization)
}

// enter waits for the caller's turn. Operators, sign-ins
// and the process's own work do not wait for organizations.
func (r *Reader) enter(ctx context.Context) (release func(), err error) {
	asking, ok := identity.PrincipalOf(ctx)
	if r.limiter == nil || !ok || asking.Organization == "" {
		return func() {}, nil
	}
	return r.limiter.Acquire(ctx, asking.Organization)
}

// Visible is whose rows a query may see, beside row level security: $1 is the
// asking organization. Postgres refuses a query without $1.
const Visible = `(organization = $1 OR $1 = '*')`

// One returns the only row that a query finds, or ErrNotFound.
func One[T any](ctx context.Context, r *Reader, organization pg.Organization, scan pgx.RowToFunc[T], query string, args ...any) (T, error) {
	found, err := List(ctx, r, organization, scan, query, args...)
	if err == nil && len(found) == 0 {
		err = tenants.ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// List returns the rows of a query. Its $1 is the asking organization, args follow.
func List[T any](ctx context.Context, r *Reader, organization pg.Organization, scan pgx.RowToFunc[T], query string, args ...any) (found []T, err error) {
	err = r.read(ctx, organization, func(tx pgx.Tx) error {
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

// ExactlyOne fails unless a statement changed one row: the tables
// have lost touch with the events otherwise.
func ExactlyOne(ctx context.Context, tx pgx.Tx, statement string, args ...any) error {
	tag, err := tx.Exec(ctx, statement, args...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%d rows changed instead of one", tag.RowsAffected())
	}
	return err
}

// OrZero is the zero time for null.
func OrZero(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// OrNull is null for the zero time.
func OrNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
