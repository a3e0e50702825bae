package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/lifecycle"
)

// A migration that waits for a table behind a long reader delays all
// later users of it: it gives up after this time, and retries.
const (
	waitForTables = `SET LOCAL lock_timeout = '2s'`
	lockAttempts  = 60
	lockPause     = 5 * time.Second
)

const lockNotAvailable = "55P03"

// withoutQueue is InTx for a transaction that sets waitForTables.
func withoutQueue(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := InTx(ctx, pool, fn)
		if code(err) != lockNotAvailable {
			return err
		}
		if attempt < lockAttempts {
			lifecycle.Pause(ctx, lockPause)
		}
		if attempt == lockAttempts || ctx.Err() != nil {
			return fmt.Errorf("%w: others hold a table that it changes (pg_stat_activity shows who, pg_locks what): "+
				"migrate again once a backup or rebuild of the module has ended", err)
		}
	}
}
