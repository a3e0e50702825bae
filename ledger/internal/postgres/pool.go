package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// PoolAt returns what was left of an organization's grants at an
// instant, from what is left now.
func PoolAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, now int64, at time.Time) (left int64, err error) {
	periods, err := openedSince(ctx, tx, organization, at)
	if err != nil {
		return 0, err
	}
	left = now
	for _, period := range periods {
		moved, err := movedSince(ctx, tx, organization, period, at)
		if err != nil {
			return 0, err
		}
		left -= moved
	}
	return left, nil
}

// openedSince returns the periods that were open at an instant: nothing
// was booked in others since. Without grants there are none.
func openedSince(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) ([]calendar.Period, error) {
	rows, err := tx.Query(ctx, `SELECT period_start, period_end FROM books
		WHERE organization = $1 AND EXISTS (SELECT FROM grants WHERE organization = $1)
			AND period_end > (SELECT coalesce(max(period_end), '-infinity') FROM statements WHERE organization = $1 AND made_at <= $2)`, organization, at)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[calendar.Period])
}

// movedSince returns what a period's transfers after an instant added
// to the pool; negative: took from it.
func movedSince(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, at time.Time) (moved int64, err error) {
	args := []any{organization, period.Start, period.End, at, ledger.Credit}
	err = pg.QueryInSavepoint(ctx, tx, `SELECT coalesce(sum(CASE WHEN to_account = $5 THEN amount ELSE -amount END), 0)::bigint FROM transfers
		WHERE `+ofOrganization+` AND effective_at >= $2 AND effective_at < $3 AND booked_at > $4 AND (from_account = $5 OR to_account = $5)`, args,
		func(rows pgx.Rows) (err error) {
			moved, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
			return err
		})
	return moved, err
}
