package service

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/reading"
)

// A Service charges and reads balances. It writes in the caller's transaction, which sees all
// organizations.
type Service struct {
	Reads     *pgxpool.Pool  // for those who ask
	Turns     *reading.Turns // of organizations at those
	Writes    *pgxpool.Pool  // for those who decide
	Decisions *postgres.DecisionStore
	Save      SaveEvents
	IDs       func() string // unique, URL-safe, at most 60 characters
	Tiers     ledger.Tiers
	Kept      ledger.Retention
	Clock     func() time.Time // of this machine: for what is read
	Time      DatabaseTime     // for what is decided
	Deciders  chan struct{}    // a place for each request that may decide at once: each holds a connection, also while it waits for a lock
	End       LogEnd           // nil: nobody knows where the log ends

	ends   latest[End]
	booked latest[contract.Positions]
}

// DatabaseTime is the clock by which all replicas decide, read through the transaction that decides: who holds a lock must not wait for a second
// connection.
type DatabaseTime func(ctx context.Context, tx pgx.Tx) (time.Time, error)

// SaveEvents keeps what others are to be informed of, in the transaction that makes it true, as the last thing that it does.
type SaveEvents func(ctx context.Context, tx pgx.Tx, events []ledger.Event) error

// read runs fn in a snapshot of one organization's rows, in its turn. It returns ErrNoOrganization for an
// impossible id.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	leave, err := s.Turns.Enter(ctx, organization)
	if err != nil {
		return err
	}
	defer leave()
	return pg.Snapshot(ctx, s.Reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return noOrganization(err)
		}
		return fn(tx, pg.Organization(organization))
	})
}

// noOrganization is the error for an id that nobody can act as. An unreachable database is none.
func noOrganization(err error) error {
	if pg.IsTransient(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ledger.ErrNoOrganization, err)
}
