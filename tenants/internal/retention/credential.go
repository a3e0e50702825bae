package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// A Credential is a key or a token that is to be forgotten.
type Credential struct{ Organization, ID, Hash string }

// Forget removes credentials from all services. It may be called again with the same.
type Forget func(ctx context.Context, credentials []Credential) error

// endedCredentials are keys or tokens that ended long ago. Services forget them first: a deleted
// row could not be found again.
type endedCredentials struct {
	table, keeps string
	ended        string // the time, in SQL
	before       func() time.Time
	forget       Forget
}

func (e endedCredentials) Name() string { return e.table }

func (e endedCredentials) Keeps() string { return e.keeps }

// credentialsAtOnce is how many are forgotten in one transaction.
const credentialsAtOnce = 500

func (e endedCredentials) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM %[1]s WHERE %[2]s < $1 LIMIT %[3]d FOR UPDATE SKIP LOCKED)) RETURNING organization, id, hash`, e.table, e.ended, credentialsAtOnce),
		e.before())
	if err != nil {
		return 0, false, err
	}
	gone, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Credential])
	if err != nil || len(gone) == 0 {
		return 0, false, err
	}
	return int64(len(gone)), len(gone) == credentialsAtOnce, e.forget(ctx, gone)
}

func (e endedCredentials) Oldest(ctx context.Context, tx pgx.Tx) (at time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return at, err
	}
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT created_at FROM %s ORDER BY created_at LIMIT 1`, e.table)).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}
