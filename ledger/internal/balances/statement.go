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
func (s *Statements) List(ctx context.Context, organization string, before int64, limit int) ([]ledger.Statement, error) {
	return snapshot.Of(ctx, s.Reads, organization, func(tx pgx.Tx, organization pg.Organization) ([]ledger.Statement, error) {
		return postgres.Statements(ctx, tx, organization, before, limit)
	})
}

// Statement reads one statement.
func (s *Statements) Statement(ctx context.Context, organization string, number int64) (ledger.Statement, error) {
	return snapshot.Of(ctx, s.Reads, organization, func(tx pgx.Tx, organization pg.Organization) (ledger.Statement, error) {
		return postgres.LoadStatement(ctx, tx, organization, number)
	})
}
