package relay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Rewind makes a relay start again at the first row of its outbox. The
// higher epoch takes the lease from a running relay.
func Rewind(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `UPDATE bus_relays SET position = 0, epoch = epoch + 1 WHERE name = $1`, name); err != nil {
		return fmt.Errorf("cannot rewind %s: %w", name, err)
	}
	return nil
}

// ReleaseLeases ends all leases of a schema: in a copy of a database
// nobody holds those of the original.
func ReleaseLeases(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE bus_relays SET epoch = epoch + 1, owner = '', expires_at = '-infinity'`); err != nil {
		return fmt.Errorf("cannot free the relays: %w", err)
	}
	return nil
}
