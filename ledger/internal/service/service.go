package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// A Service charges and reads balances. It writes in the caller's transaction, which sees all
// organizations.
type Service struct {
	Reads     *pgxpool.Pool // for those who ask
	Writes    *pgxpool.Pool // for those who decide
	Decisions *postgres.DecisionStore
	Save      SaveEvents
	IDs       func() string // unique, URL-safe, at most 60 characters
	Tiers     ledger.Tiers
	Kept      ledger.Retention
	Clock     func() time.Time
	Ahead     func(ctx context.Context) (time.Duration, error) // how far Clock is ahead of the database's
}

// ErrClock means that nothing is decided: a period that has not begun would be opened.
var ErrClock = errors.New("the clock of this process is more than an hour ahead of the database's")

// aheadMost is how far the clock may be ahead of the database's.
const aheadMost = time.Hour

// decidedAt is the time at which something is decided.
func (s *Service) decidedAt(ctx context.Context) (time.Time, error) {
	ahead, err := s.Ahead(ctx)
	if err == nil && ahead > aheadMost {
		err = ErrClock
	}
	return s.now(), err
}

// SaveEvents keeps what others are to be informed of, in the transaction that makes it true, as the last thing that it does.
type SaveEvents func(ctx context.Context, tx pgx.Tx, events []ledger.Event) error

// now is the time as the database keeps it.
func (s *Service) now() time.Time { return s.Clock().UTC().Truncate(time.Microsecond) }

// read runs fn in a snapshot of one organization's rows. It returns ErrNoOrganization for an
// impossible id.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
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
