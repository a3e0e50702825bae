package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
)

// Reduce reduces the lines about an organization's
// erased events to who did what to what, by id.
func Reduce(ctx context.Context, tx pgx.Tx, organization, deletion string, events []eventstore.Cursor) error {
	_, err := tx.Exec(ctx, `UPDATE audit_events SET actor_name = '', address = '', client = '', request = '', target_name = '', before = '', after = '',
			reduced_by = $2
		WHERE organization = $1 AND position = ANY($3) AND reduced_by = ''`, organization, deletion, events)
	if err != nil {
		return fmt.Errorf("cannot reduce %d lines of the audit of %q: %w", len(events), organization, err)
	}
	return nil
}

// ReduceActors removes people from the lines about an
// organization's streams whose names begin with prefix.
// Their events stay, with as little of their origin.
func ReduceActors(ctx context.Context, tx pgx.Tx, organization, deletion, prefix string) error {
	_, err := tx.Exec(ctx, `UPDATE events SET metadata = json_strip_nulls(json_build_object('actor', metadata->'actor', 'actor_kind', metadata->'actor_kind',
			'role', metadata->'role'))
		WHERE organization = $1 AND starts_with(stream, $2)`, organization, prefix)
	if err != nil {
		return fmt.Errorf("cannot reduce the origins of deletions of %q: %w", organization, err)
	}
	_, err = tx.Exec(ctx, `UPDATE audit_events SET actor_name = '', address = '', client = '', request = '', reduced_by = $2
		WHERE organization = $1 AND starts_with(stream, $3) AND reduced_by = ''`, organization, deletion, prefix)
	if err != nil {
		return fmt.Errorf("cannot reduce the lines about deletions of %q: %w", organization, err)
	}
	return nil
}

// Reduced adds up the lines of an organization reduced by a deletion.
func Reduced(ctx context.Context, tx pgx.Tx, organization, deletion string) (reduction tenants.Reduction, err error) {
	rows, err := tx.Query(ctx, selectAuditEvents+`WHERE organization = $1 AND reduced_by = $2 ORDER BY sequence`, organization, deletion)
	if err != nil {
		return reduction, err
	}
	defer rows.Close()
	for rows.Next() {
		line, err := scanAuditEvent(rows)
		if err != nil {
			return reduction, err
		}
		reduction.Add(line)
	}
	return reduction, rows.Err()
}
