package parked

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
)

// The reasons of emptied records. Their places stay until they are old,
// so that a comparison with the log finds no gap.
const (
	erasedReason    = "it is erased: its organization or project is deleted"
	discardedReason = "it is discarded"
)

// unemptied is the condition for records with content.
const unemptied = `reason NOT IN ('` + erasedReason + `', '` + discardedReason + `')`

const empty = `UPDATE bus_parked SET key = NULL, value = NULL, header_names = '{}', header_values = '{}', replay_asked_at = NULL, reason = `

const eraseRecords = empty + `'` + erasedReason + `' WHERE ctid = ANY (ARRAY(SELECT ctid FROM bus_parked WHERE ` + unemptied + `
	AND organization = $1 AND ($2 = '' OR convert_to($2, 'UTF8') = header_values[array_position(header_names, 'ce_project')]) LIMIT $3 FOR UPDATE))`

// Erase empties at most limit records of an organization or of one of its
// projects, and returns how many. tx sees the rows of every organization.
func Erase(ctx context.Context, tx pgx.Tx, organization, project string, limit int) (int64, error) {
	tag, err := tx.Exec(ctx, eraseRecords, organization, project, limit)
	return tag.RowsAffected(), err
}

// AddErased parks only the place of a record whose content must be erased.
func AddErased(ctx context.Context, tx pgx.Tx, group string, r bus.Record) error {
	return add(ctx, tx, group, bus.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time}, organizationOf(r), erasedReason)
}

// Discard empties the records and returns how many.
func Discard(ctx context.Context, tx pgx.Tx, filter Filter) (int64, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, empty+`'`+discardedReason+`'`+chosen, filter.args()...)
	return tag.RowsAffected(), err
}
