package erasure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus/parked"
)

// A Table is a module's data of organizations.
type Table struct {
	Name string // as in contract.Erased

	// Erase deletes about limit rows of a deletion, from a place on: ""
	// at first, then next. An empty next means that nothing is left.
	// ErrNotYet rolls back and retries later.
	Erase func(ctx context.Context, tx pgx.Tx, of Deletion, place string, limit int) (removed int64, next string, err error)
}

// ErrNotYet means that something else must happen first.
var ErrNotYet = errors.New("it can't be erased yet")

// OfProject is the condition for tables with a column project: $1 is
// the organization, $2 the project or ”.
const OfProject = `organization = $1 AND ($2 = '' OR project = $2)`

// OfOrganization is the condition for tables without data of single projects.
const OfOrganization = `organization = $1 AND $2 = ''`

// again is the place of a table that is read from its start each time.
const again = "again"

// Rows erases the rows of a table that match a condition on $1 and $2.
func Rows(name, condition string) Table {
	return Table{Name: name, Erase: func(ctx context.Context, tx pgx.Tx, of Deletion, _ string, limit int) (int64, string, error) {
		removed, err := deleteRows(ctx, tx, name, condition, of, limit)
		if err != nil || removed < int64(limit) {
			return removed, "", err
		}
		return removed, again, nil
	}}
}

func deleteRows(ctx context.Context, tx pgx.Tx, name, condition string, of Deletion, limit int) (int64, error) {
	table := pgx.Identifier{name}.Sanitize()
	tag, err := tx.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY(ARRAY(SELECT ctid FROM %[1]s WHERE %[2]s LIMIT $3))`, table, condition),
		of.Organization, of.Project, limit)
	if err != nil {
		return 0, fmt.Errorf("cannot delete from %s: %w", table, err)
	}
	return tag.RowsAffected(), nil
}

// Parked empties parked records: they are as the tenant sent them, even
// with headers that are no text. Their places stay until they are old.
func Parked() Table {
	return Table{Name: "bus_parked", Erase: func(ctx context.Context, tx pgx.Tx, of Deletion, _ string, limit int) (int64, string, error) {
		emptied, err := parked.Erase(ctx, tx, of.Organization, of.Project, limit)
		if err != nil || emptied < int64(limit) {
			return emptied, "", err
		}
		return emptied, again, nil
	}}
}

// partitionBatch limits the locks of a transaction: each partition
// takes one, and one for each of its indexes.
const partitionBatch = 16

// after begins the place in a partitioned table; the name of the last
// erased partition follows.
const after = "after "

// Partitions is Rows for a partitioned table. It takes few partitions
// at a time, and locks no others.
func Partitions(name, condition string) Table {
	return Table{Name: name, Erase: func(ctx context.Context, tx pgx.Tx, of Deletion, place string, limit int) (removed int64, next string, err error) {
		last := strings.TrimPrefix(place, after)
		partitions, err := partitionsBehind(ctx, tx, name, last)
		if err != nil || len(partitions) == 0 {
			return 0, "", err
		}
		for _, partition := range partitions {
			n, err := deleteRows(ctx, tx, partition, condition, of, limit)
			if removed += n; err != nil || n == int64(limit) {
				return removed, after + last, err
			}
			last = partition
		}
		return removed, after + last, nil
	}}
}

func partitionsBehind(ctx context.Context, tx pgx.Tx, table, last string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT c.relname::text FROM pg_partition_tree($1::text::regclass) t JOIN pg_class c ON c.oid = t.relid
		WHERE t.isleaf AND c.relname::text COLLATE "C" > $2 ORDER BY c.relname::text COLLATE "C" LIMIT $3`,
		pgx.Identifier{table}.Sanitize(), last, partitionBatch)
	if err != nil {
		return nil, fmt.Errorf("cannot list the partitions of %s: %w", table, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
