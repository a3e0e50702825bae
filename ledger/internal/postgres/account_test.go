package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Published states are locked once, however many there are and whatever
// the planner's estimate.
func TestPublishedStatesAreLockedOnce(t *testing.T) {
	const organizations = 300
	l := checkedLedger{ledgertest.New(t)}
	due := func() (states []ledger.AccountState) {
		l.exec(t, `INSERT INTO unpublished SELECT 'org ' || n, n FROM generate_series(1, $1::int) n`, organizations)
		for n := 1; n <= organizations; n++ {
			states = append(states, ledger.AccountState{Organization: ledger.Organization{ID: fmt.Sprint("org ", n)}, Version: int64(n)})
		}
		return states
	}
	due()
	l.exec(t, `DELETE FROM unpublished`)
	l.exec(t, `ANALYZE unpublished`)
	states := due()
	states[organizations-1].Version-- // it has changed since
	var read, left int
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		const count = `SELECT pg_stat_get_xact_blocks_fetched('unpublished'::regclass)`
		if err := postgres.MarkPublished(ctx, tx, states); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, count).Scan(&read); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT count(*) FROM unpublished`).Scan(&left)
	})
	if left != 1 || read > 10*organizations {
		t.Errorf("%d blocks were read to note %d states, and %d are left, want 1", read, organizations, left)
	}
}
