package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// deletedOrganizations are those deleted long ago. They go after the
// last of their books, with everything else of theirs.
type deletedOrganizations struct{ before func() time.Time }

func (deletedOrganizations) Name() string { return "organizations" }

func (deletedOrganizations) Keeps() string {
	return "a row for each organization, also a deleted one for WEIR_DELETIONS_MONTHS and as long as it has books"
}

const removeDeleted = `WITH gone AS (DELETE FROM organizations o USING erasures e
		WHERE e.organization = o.organization AND e.project = '' AND e.published_at < $1
			AND NOT EXISTS (SELECT FROM books b WHERE b.organization = o.organization)
			AND NOT EXISTS (SELECT FROM statements s WHERE s.organization = o.organization)
		RETURNING o.organization),
	chained AS (DELETE FROM chains c USING gone WHERE c.organization = gone.organization),
	linked AS (DELETE FROM links l USING gone WHERE l.organization = gone.organization),
	decided AS (DELETE FROM events e USING gone WHERE e.organization = gone.organization),
	pending AS (DELETE FROM unpublished u USING gone WHERE u.organization = gone.organization)
	SELECT count(*) FROM gone`

// Prune implements prune.Table.
func (d deletedOrganizations) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	err = tx.QueryRow(ctx, removeDeleted, d.before()).Scan(&removed)
	return removed, false, err
}

// Oldest is when the first one still there was deleted.
func (deletedOrganizations) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var oldest *time.Time
	err := tx.QueryRow(ctx, `SELECT min(published_at) FROM erasures JOIN organizations USING (organization) WHERE project = ''`).Scan(&oldest)
	return timeOf(oldest), err
}

// erasuresOf keeps the record of a deletion as long as the organization's books.
func erasuresOf(rows prune.Rows) prune.Rows {
	rows.Only = `(t.project <> '' OR NOT EXISTS (SELECT FROM organizations o WHERE o.organization = t.organization))`
	return rows
}
