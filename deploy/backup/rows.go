package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// rows counts the rows of each table. A connection whose row level
// security hides some reads fewer without an error: the numbers show it.
func rows(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	found, err := tx.Query(ctx, `SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	counted := make(map[string]int64, len(tables))
	for _, table := range tables {
		var n int64
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()).Scan(&n); err != nil {
			return nil, fmt.Errorf("cannot count the rows of %s: %w", table, err)
		}
		counted[table] = n
	}
	return counted, nil
}

// sameRows names the tables that were not restored with all rows.
func sameRows(back, want map[string]int64) (err error) {
	all := maps.Clone(back)
	maps.Copy(all, want)
	for _, table := range slices.Sorted(maps.Keys(all)) {
		if back[table] != want[table] {
			err = errors.Join(err, fmt.Errorf("%s has %d rows, not the %d of the manifest", table, back[table], want[table]))
		}
	}
	return err
}
