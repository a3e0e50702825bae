package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Bounds of an outbox that is pruned.
const (
	Retained   = 20_000 // published facts to keep: a relay goes back by what its topic has lost
	pruneBatch = 10_000 // facts that one transaction deletes
)

// Table returns the outbox of a relay, for a prune.Pruner: published
// facts are deleted, except the newest. It is for modules that never
// write a fact twice: a deleted one would be published again.
func Table(relay string) prune.Table {
	return facts{relay: relay, retained: Retained, batch: pruneBatch}
}

type facts struct {
	relay           string // its cursor is at the last published fact
	retained, batch int64
}

func (facts) Name() string { return "facts" }

func (facts) Keeps() string { return "what is still to be published, and the newest 20,000 facts" }

func (f facts) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	var published int64
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(position), 0) FROM bus_relays WHERE name = $1`, f.relay).Scan(&published); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM facts WHERE position IN (SELECT position FROM facts WHERE position <= $1 ORDER BY position LIMIT $2)`,
		published-f.retained, f.batch)
	return tag.RowsAffected(), tag.RowsAffected() == f.batch, err
}

func (facts) Oldest(ctx context.Context, tx pgx.Tx) (at time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	err = tx.QueryRow(ctx, `SELECT at FROM facts ORDER BY position LIMIT 1`).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}
