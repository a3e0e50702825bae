package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// overAt is when a deletion was finished or cancelled; null: it was not.
const overAt = `CASE state WHEN 'gone' THEN finished_at WHEN 'cancelled' THEN requested_at END`

// A PastDeletion is finished or cancelled:
// its subject is gone, or was restored.
type PastDeletion struct {
	tenants.Deletable
	State tenants.DeletionState
}

// TakePastDeletions removes at most limit deletions that ended
// before an instant, and returns them. tx must act as the system.
func TakePastDeletions(ctx context.Context, tx pgx.Tx, before time.Time, limit int) ([]PastDeletion, error) {
	rows, err := tx.Query(ctx, `DELETE FROM deletions WHERE id IN (SELECT id FROM deletions WHERE `+overAt+` < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING organization, project, state`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot remove past deletions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[PastDeletion])
}

// OldestDeletion is when the first deletion ended; zero if none has.
func OldestDeletion(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	var at *time.Time
	err := tx.QueryRow(ctx, `SELECT min(`+overAt+`) FROM deletions`).Scan(&at)
	return query.OrZero(at), err
}
