package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// queueUnpublished marks the organizations' states as changed. Versions
// are drawn under the organization's lock, so they grow with its changes.
func queueUnpublished(batch *pgx.Batch, organizations []string) {
	batch.Queue(`INSERT INTO unpublished (organization, version)
		SELECT id, nextval('versions') FROM unnest($1::text[]) AS id
		ON CONFLICT (organization) DO UPDATE SET version = excluded.version`, organizations)
}

// An Unpublished is an organization whose account state has changed
// since it was published.
type Unpublished struct {
	Organization ledger.Organization
	Book         ledger.Book // of the latest period
	Version      int64
	Deleted      bool // it is to be withdrawn
}

// AllUnpublished lists the organizations whose account states are due.
func AllUnpublished(ctx context.Context, tx pgx.Tx) ([]Unpublished, error) {
	return accountsIn(ctx, tx, `SELECT u.version, `+organizationColumns+`,
			EXISTS (SELECT FROM erasures e WHERE e.organization = u.organization AND e.project = ''), b.*
		FROM unpublished u JOIN organizations o USING (organization)
		CROSS JOIN LATERAL (SELECT `+bookColumns+` FROM books
			WHERE organization = u.organization ORDER BY period_start DESC LIMIT 1) b`)
}

// accountsIn reads versions, organizations, whether they are deleted, and books.
func accountsIn(ctx context.Context, tx pgx.Tx, query string) ([]Unpublished, error) {
	rows, _ := tx.Query(ctx, query)
	var due []Unpublished
	var u Unpublished
	var o organizationRow
	var b orgBook
	fields := slices.Concat([]any{&u.Version}, o.fields(), []any{&u.Deleted}, b.fields())
	_, err := pgx.ForEachRow(rows, fields, func() error {
		u.Organization = o.organization()
		u.Book = b.book
		u.Book.Pool = u.Organization.Pool
		due = append(due, u)
		return nil
	})
	return due, err
}

// AllPublished lists the organizations with a plan whose account states
// are not due: their last ones are published.
func AllPublished(ctx context.Context, tx pgx.Tx) ([]Unpublished, error) {
	return accountsIn(ctx, tx, `SELECT 0::bigint, `+organizationColumns+`,
			EXISTS (SELECT FROM erasures e WHERE e.organization = o.organization AND e.project = ''), b.*
		FROM organizations o
		CROSS JOIN LATERAL (SELECT `+bookColumns+` FROM books
			WHERE organization = o.organization ORDER BY period_start DESC LIMIT 1) b
		WHERE plans <> '[]' AND NOT EXISTS (SELECT FROM unpublished u WHERE u.organization = o.organization)`)
}

// MarkPublished removes published states. An organization that has
// changed since stays due, as it has a new version. The rows are locked
// first, in the common order. Both statements are planned each time and
// without a join: the planner takes the table for empty, as it mostly
// is, and would lock all rows again for each.
func MarkPublished(ctx context.Context, tx pgx.Tx, states []ledger.AccountState) error {
	ids, versions := make([]string, len(states)), make([]int64, len(states))
	for i, state := range states {
		ids[i], versions[i] = state.Organization.ID, state.Version
	}
	for _, statement := range []string{
		`SELECT FROM unpublished WHERE organization = ANY($1) AND version = ANY($2) ORDER BY organization FOR UPDATE`,
		`DELETE FROM unpublished WHERE organization = ANY($1) AND version = ANY($2)`,
	} {
		if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeCacheDescribe, ids, versions); err != nil {
			return err
		}
	}
	return nil
}

// MarkUnpublished makes the account states of organizations due, of those
// that the ledger has.
func MarkUnpublished(ctx context.Context, tx pgx.Tx, organizations ...string) error {
	_, err := tx.Exec(ctx, `INSERT INTO unpublished (organization, version)
		SELECT organization, nextval('versions')
		FROM (SELECT organization FROM organizations WHERE organization = ANY($1) ORDER BY organization FOR NO KEY UPDATE) AS locked
		ON CONFLICT (organization) DO UPDATE SET version = excluded.version`, organizations)
	return err
}

// MarkAllUnpublished makes the account state of every organization with
// a plan due.
func MarkAllUnpublished(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO unpublished (organization, version)
		SELECT organization, nextval('versions')
		FROM (SELECT organization FROM organizations WHERE plans <> '[]' ORDER BY organization FOR NO KEY UPDATE) AS locked
		ON CONFLICT (organization) DO UPDATE SET version = excluded.version`)
	return err
}

// RaiseVersions makes the next version greater than any ever published:
// restored books lack the latest ones. Versions began as the time in
// microseconds, and no ledger changes a million accounts a second.
func RaiseVersions(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT setval('versions', greatest((SELECT last_value FROM versions), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))`)
	return err
}

// PoolAt returns what was left of an organization's grants at an
// instant, from what is left now.
func PoolAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, now int64, at time.Time) (left int64, err error) {
	periods, err := openedSince(ctx, tx, organization, at)
	if err != nil {
		return 0, err
	}
	left = now
	for _, period := range periods {
		moved, err := movedSince(ctx, tx, organization, period, at)
		if err != nil {
			return 0, err
		}
		left -= moved
	}
	return left, nil
}

// openedSince returns the periods that were open at an instant: nothing
// was booked in others since. Without grants there are none.
func openedSince(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) ([]calendar.Period, error) {
	rows, _ := tx.Query(ctx, `SELECT period_start, period_end FROM books
		WHERE organization = $1 AND EXISTS (SELECT FROM grants WHERE organization = $1)
			AND period_end > (SELECT coalesce(max(period_end), '-infinity') FROM statements WHERE organization = $1 AND made_at <= $2)`, organization, at)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[calendar.Period])
}

// movedSince returns what a period's transfers after an instant added
// to the pool; negative: took from it.
func movedSince(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, at time.Time) (moved int64, err error) {
	args := []any{organization, period.Start, period.End, at, ledger.Credit}
	err = pg.QueryInSavepoint(ctx, tx, `SELECT coalesce(sum(CASE WHEN to_account = $5 THEN amount ELSE -amount END), 0)::bigint FROM transfers
		WHERE `+ofOrganization+` AND effective_at >= $2 AND effective_at < $3 AND booked_at > $4 AND (from_account = $5 OR to_account = $5)`, args,
		func(rows pgx.Rows) (err error) {
			moved, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
			return err
		})
	return moved, err
}
