package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// QueryInSavepoint runs a query in one exchange and releases its locks at once, not at
// the end of the transaction: a reader of many days of a partitioned table
// holds only one day's locks. It still sees the transaction's snapshot.
//
// The query is planned for its values: partitions that these exclude
// stay unlocked, where a generic plan locks all.
func QueryInSavepoint(ctx context.Context, tx pgx.Tx, text string, args []any, read func(rows pgx.Rows) error) error {
	batch := &pgx.Batch{}
	batch.Queue(`SAVEPOINT look`)
	batch.Queue(`SET LOCAL plan_cache_mode = force_custom_plan`)
	batch.Queue(text, args...).Query(read)
	batch.Queue(`ROLLBACK TO SAVEPOINT look`)
	batch.Queue(`RELEASE SAVEPOINT look`)
	return tx.SendBatch(ctx, batch).Close()
}
