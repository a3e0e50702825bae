package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
)

// Positions are the next offsets of weir.logs.v1 that the ledger has not applied, as the transaction sees them.
func Positions(ctx context.Context, tx pgx.Tx) (contract.Positions, error) {
	rows, err := tx.Query(ctx, `SELECT partition, next FROM bus_positions WHERE group_name = $1 AND topic = $2`,
		contract.GroupLedger, contract.TopicLogs)
	if err != nil {
		return nil, err
	}
	return collectPositions(rows)
}

// PositionsAt are the positions that had been applied at an instant.
func PositionsAt(ctx context.Context, tx pgx.Tx, at time.Time) (contract.Positions, error) {
	rows, err := tx.Query(ctx, `SELECT p.partition, r.next_offset FROM (SELECT DISTINCT partition FROM bus_positions
			WHERE group_name = $1 AND topic = $2) p
		CROSS JOIN LATERAL (SELECT next_offset FROM ranges WHERE partition = p.partition AND booked_at <= $3
			ORDER BY booked_at DESC LIMIT 1) r`, contract.GroupLedger, contract.TopicLogs, at)
	if err != nil {
		return nil, err
	}
	return collectPositions(rows)
}

func collectPositions(rows pgx.Rows) (contract.Positions, error) {
	found := contract.Positions{}
	var partition int
	var next int64
	_, err := pgx.ForEachRow(rows, []any{&partition, &next}, func() error {
		found[partition] = next
		return nil
	})
	return found, err
}
