package balances

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/pg"
)

// Statements reads the statements of closed periods.
type Statements struct {
	Reads *snapshot.Reader
}

// List lists an organization's statements with numbers below before,
// the latest first, with totals only. 0 is the start.
func (s *Statements) List(ctx context.Context, organization string, before int64, limit int) (found []ledger.Statement, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Statements(ctx, tx, organization, before, limit)
		return err
	})
	return found, err
}

// Statement reads one statement.
func (s *Statements) Statement(ctx context.Context, organization string, number int64) (found ledger.Statement, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.LoadStatement(ctx, tx, organization, number)
		return err
	})
	return found, err
}
