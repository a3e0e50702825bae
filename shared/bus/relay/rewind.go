package relay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Rewind has a relay begin again with the first row of its outbox. A relay that
// is at work loses its lease by the higher epoch.
func Rewind(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `UPDATE bus_relays SET position = 0, epoch = epoch + 1 WHERE name = $1`, name); err != nil {
		return fmt.Errorf("cannot rewind %s: %w", name, err)
	}
	return nil
}

// ReleaseLeases ends all leases of a schema: in a copy of a database nobody holds those
// that were held when it was made.
func ReleaseLeases(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `UPDATE bus_relays SET epoch = epoch + 1, owner = '', expires_at = '-infinity'`); err != nil {
		return fmt.Errorf("cannot free the relays: %w", err)
	}
	return nil
}
