package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// LastRanges returns the ranges of each partition's last transaction,
// unless they are older than since.
func LastRanges(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Range, error) {
	rows, err := tx.Query(ctx, `SELECT `+rangeColumns+` FROM ranges WHERE (partition, booked_at) IN (
		SELECT partition, booked_at FROM ranges WHERE (partition, first_offset) IN (
			SELECT partition, (SELECT max(first_offset) FROM ranges r WHERE r.partition = p.partition) FROM bus_positions p
			 WHERE group_name = $1 AND topic = $2)) AND effective_from >= $3 ORDER BY partition, first_offset`,
		contract.GroupLedger, contract.TopicLogs, since)
	if err != nil {
		return nil, err
	}
	return collectRanges(rows)
}
