package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
)

// A Reader reads for requests, through its own connections.
type Reader struct {
	Pool    *pgxpool.Pool
	Limiter *httpapi.Limiter // of organizations
	Clock   func() time.Time // of this machine; decisions use the database's

	replica *replica.Reader // nil: reads use the pool
}

// From returns the same reader on a replica, with the pool as fallback.
func (r *Reader) From(replica *replica.Reader) *Reader {
	return &Reader{Pool: r.Pool, Limiter: r.Limiter, Clock: r.Clock, replica: replica}
}

// Read runs fn in a snapshot of one organization's rows, in its turn.
// It returns ErrNoOrganization for an invalid id. If a replica cancels
// the read, fn runs a second time.
func (r *Reader) Read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	release, err := r.Limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	return r.replica.Snapshot(ctx, r.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return NoOrganization(err)
		}
		return fn(tx, pg.Organization(organization))
	})
}

// Of reads what there is of an organization with a plan, as Reader.Read does.
func Of[T any](ctx context.Context, r *Reader, organization string, read func(tx pgx.Tx, organization pg.Organization) (T, error)) (found T, err error) {
	err = r.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err = Exists(ctx, tx, organization); err == nil {
			found, err = read(tx, organization)
		}
		return err
	})
	return found, err
}

// ReadBatch is Read for a batch of queries in one round trip.
func (r *Reader) ReadBatch(ctx context.Context, organization string, queue func(batch *pgx.Batch, organization pg.Organization)) error {
	id := pg.Organization(organization)
	if err := id.Check(); err != nil {
		return NoOrganization(err)
	}
	release, err := r.Limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	return pg.ReadBatch(ctx, r.Pool, id, func(batch *pgx.Batch) { queue(batch, id) })
}

// NoOrganization returns the error for an invalid id. Others, such as
// of an unreachable database, pass unchanged.
func NoOrganization(err error) error {
	if pg.IsTransient(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ledger.ErrNoOrganization, err)
}

// Exists returns ErrNoOrganization for an organization without a plan.
func Exists(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
	o, found, err := postgres.LoadOrganization(ctx, tx, string(organization))
	if err == nil && (!found || o.Provisional()) {
		return ledger.ErrNoOrganization
	}
	return err
}

// OrganizationNow reads an organization with a plan, and its time.
func (r *Reader) OrganizationNow(ctx context.Context, tx pgx.Tx, organization pg.Organization) (ledger.Organization, time.Time, error) {
	o, found, err := postgres.LoadOrganization(ctx, tx, string(organization))
	now := o.Now(r.Clock().UTC())
	if err == nil && (!found || !o.HasPlanAt(now)) {
		err = ledger.ErrNoOrganization
	}
	return o, now, err
}

// OrganizationAt reads an organization that had a plan at an instant.
func OrganizationAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) (ledger.Organization, error) {
	o, found, err := postgres.LoadOrganization(ctx, tx, string(organization))
	switch {
	case err != nil:
		return o, err
	case !found || !o.HasPlanAt(at):
		return o, ledger.ErrNoOrganization
	}
	return o, nil
}
