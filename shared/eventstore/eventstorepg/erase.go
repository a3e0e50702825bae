package eventstorepg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
)

// ErasedName is the stored name of events with only their place left.
const ErasedName = "erased"

// EraseTx empties the events of an organization's streams, in the
// caller's transaction, which has the turn to append. Their positions
// stay, so that nothing is ever appended there. It returns their cursors.
func EraseTx(ctx context.Context, tx pgx.Tx, organization string, streams []string) ([]eventstore.Cursor, error) {
	rows, err := tx.Query(ctx, `UPDATE events SET name = $3, data = '{}', metadata = '{}'
		WHERE organization = $1 AND stream = ANY($2) AND name <> $3 RETURNING position`, organization, streams, ErasedName)
	if err != nil {
		return nil, fmt.Errorf("cannot erase %d streams of %q: %w", len(streams), organization, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[eventstore.Cursor])
}

// StreamsTx lists by name at most limit streams of an organization that
// are not erased, from behind on, without names that begin with except.
func StreamsTx(ctx context.Context, tx pgx.Tx, organization, behind, except string, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT stream FROM events
		WHERE organization = $1 AND stream > $2 AND name <> $3 AND NOT starts_with(stream, $4) ORDER BY stream LIMIT $5`,
		organization, behind, ErasedName, except, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot list streams of %q: %w", organization, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func isErased(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) (gone bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events WHERE organization = $1 AND stream = $2 AND name = $3)`,
		stream.Organization, stream.Name, ErasedName).Scan(&gone)
	return gone, err
}
