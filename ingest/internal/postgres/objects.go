package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
)

// unusedAfter is when an upload that was not committed has failed for
// certain, and when an object that was deleted is deleted again: an upload may
// have been under way.
const unusedAfter = time.Hour

// objectsPerRun is how many objects one transaction deletes.
const objectsPerRun = 100

// errNoArchive means that objects can't be reached.
var errNoArchive = errors.New("texts lie in objects, and WEIR_INGEST_ARCHIVE_URL does not say where")

// erasableObjects are erased once the blocks that name them are gone.
func erasableObjects(store objects.Store) erasure.Table {
	return erasure.Table{Name: "objects", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, _ string, _ int) (int64, string, error) {
		removed, err := deleteObjects(ctx, tx, store, erasure.OfProject, of.Organization, of.Project)
		if err != nil || removed < objectsPerRun {
			return removed, "", err
		}
		return removed, "again", nil
	}}
}

// deleteObjects deletes some objects that match a condition, and notes
// that they are to be deleted again.
func deleteObjects(ctx context.Context, tx pgx.Tx, store objects.Store, condition string, args ...any) (int64, error) {
	rows, err := tx.Query(ctx, `WITH gone AS (DELETE FROM objects WHERE ctid = ANY (ARRAY(SELECT ctid FROM objects WHERE `+condition+` LIMIT 100))
			RETURNING object),
		noted AS (INSERT INTO deleted_objects (object, deleted_at) SELECT object, now() FROM gone)
		SELECT object::text FROM gone`, args...)
	if err != nil {
		return 0, err
	}
	return deleteAll(ctx, rows, store)
}

func deleteAll(ctx context.Context, rows pgx.Rows, store objects.Store) (deleted int64, err error) {
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	if len(names) > 0 && store == nil {
		return 0, errNoArchive
	}
	for _, name := range names {
		if err := store.Delete(ctx, name); err != nil {
			return 0, err
		}
	}
	return int64(len(names)), nil
}

// objectTable has the objects that there are, or that are being written.
type objectTable struct {
	store objects.Store
	clock func() time.Time
}

func (objectTable) Name() string  { return "objects" }
func (objectTable) Keeps() string { return "as long as the blocks of their day" }

func (o objectTable) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	days, err := loadDays(ctx, tx)
	if err != nil {
		return 0, false, err
	}
	retentions, begins := make([]int16, len(days)), make([]time.Time, len(days))
	for i, d := range days {
		retentions[i], begins[i] = int16(d.retention), d.begins //nolint:gosec // bounded by the contract
	}
	removed, err = deleteObjects(ctx, tx, o.store, `NOT used AND created_at < $3 OR (retention, day) NOT IN (SELECT * FROM unnest($1::smallint[], $2::date[]))`,
		retentions, begins, o.clock().Add(-unusedAfter))
	return removed, removed == objectsPerRun, err
}

func (objectTable) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return oldest(ctx, tx, `SELECT min(created_at) FROM objects`)
}

// deletedObjects are deleted a second time, and forgotten.
type deletedObjects struct {
	store objects.Store
	clock func() time.Time
}

func (deletedObjects) Name() string  { return "deleted_objects" }
func (deletedObjects) Keeps() string { return "an hour, until an upload that was under way has ended" }

func (o deletedObjects) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	rows, err := tx.Query(ctx, `DELETE FROM deleted_objects WHERE ctid = ANY (ARRAY(SELECT ctid FROM deleted_objects WHERE deleted_at < $1 LIMIT 100))
		RETURNING object::text`, o.clock().Add(-unusedAfter))
	if err != nil {
		return 0, false, err
	}
	removed, err = deleteAll(ctx, rows, o.store)
	return removed, removed == objectsPerRun, err
}

func (deletedObjects) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return oldest(ctx, tx, `SELECT min(deleted_at) FROM deleted_objects`)
}

// oldest is a time that a query finds; zero: it finds none.
func oldest(ctx context.Context, tx pgx.Tx, query string) (time.Time, error) {
	var found *time.Time
	if err := tx.QueryRow(ctx, query).Scan(&found); err != nil || found == nil {
		return time.Time{}, err
	}
	return *found, nil
}
