package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// A Credential is a key or a token to be forgotten.
type Credential struct{ Organization, ID, Hash string }

// Forget removes credentials from all services. It is idempotent.
type Forget func(ctx context.Context, credentials []Credential) error

// EndedKept is how long an ended credential is
// kept: its users get the reason of the refusal.
const EndedKept = 90 * 24 * time.Hour

// Credentials is a table of keys or tokens, which are
// removed EndedKept after their end. Services forget
// them first: a deleted row could not be found again.
type Credentials struct {
	Table  string
	Bound  string // see prune.Table.Keeps
	Ended  string // when a credential ended, in SQL
	Clock  func() time.Time
	Forget Forget
}

// Name implements prune.Table.
func (c Credentials) Name() string { return c.Table }

// Keeps implements prune.Table.
func (c Credentials) Keeps() string { return c.Bound }

// batchSize is how many are forgotten in one transaction.
const batchSize = 500

// Prune implements prune.Table.
func (c Credentials) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM %[1]s WHERE %[2]s < $1 LIMIT %[3]d FOR UPDATE SKIP LOCKED)) RETURNING organization, id, hash`, c.Table, c.Ended, batchSize),
		c.Clock().Add(-EndedKept))
	if err != nil {
		return 0, false, err
	}
	gone, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Credential])
	if err != nil || len(gone) == 0 {
		return 0, false, err
	}
	return int64(len(gone)), len(gone) == batchSize, c.Forget(ctx, gone)
}

// Oldest implements prune.Table.
func (c Credentials) Oldest(ctx context.Context, tx pgx.Tx) (at time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return at, err
	}
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT created_at FROM %s ORDER BY created_at LIMIT 1`, c.Table)).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}
