package snapshot_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
	"github.com/weirlog/weir/shared/pg"
)

// Reads take turns by organization.
func TestReadsTakeTurns(t *testing.T) {
	l := ledgertest.New(t)
	limitertest.Check(t, ledgertest.Readers, 16, func(ctx context.Context, organization string, work func()) error {
		return l.Reads.Read(ctx, organization, func(pgx.Tx, pg.Organization) error {
			work()
			return nil
		})
	})
}
