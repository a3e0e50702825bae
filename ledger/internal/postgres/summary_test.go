package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Only the summary gives way: other statements of its transaction wait
// as long as before.
func TestOnlySummariesGiveWay(t *testing.T) {
	l := ledgertest.New(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		const shown = `SHOW lock_timeout`
		var before, after string
		if err := tx.QueryRow(ctx, shown).Scan(&before); err != nil {
			return err
		}
		if err := postgres.Summarize(ctx, tx, l.Now().Add(-24*time.Hour), l.Now()); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, shown).Scan(&after)
		if after != before {
			t.Errorf("waits for a lock %s at most, before %s", after, before)
		}
		return err
	})
}
