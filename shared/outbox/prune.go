package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
)

// Bounds of what a Pruner leaves and does.
const (
	keepSaid      = 10_000 // facts that were said: a relay that lost its lease goes back by a page or two
	pruneAtOnce   = 10_000 // facts that one transaction forgets
	pruneInterval = 10 * time.Minute
)

// A Pruner forgets facts that were said long ago. It is for modules that never write a fact twice: one that was forgotten would
// be said again.
type Pruner struct {
	Pool   *pgxpool.Pool
	Relay  string // whose cursor tells what was said
	Logger *slog.Logger
}

// Run prunes now and then until ctx ends. A failure is logged and tried again later.
func (p *Pruner) Run(ctx context.Context) error {
	ticker := time.NewTicker(pruneInterval)
	defer ticker.Stop()
	for {
		if err := p.RunOnce(ctx); err != nil && ctx.Err() == nil {
			p.Logger.Warn("cannot prune the outbox", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// RunOnce forgets all that was said but the newest.
func (p *Pruner) RunOnce(ctx context.Context) error {
	for {
		forgotten, err := p.forget(ctx, keepSaid, pruneAtOnce)
		if err != nil {
			return fmt.Errorf("cannot forget facts that %q has said: %w", p.Relay, err)
		}
		if forgotten < pruneAtOnce {
			return nil
		}
	}
}

// forget deletes at most limit facts that lie more than keep behind the relay's cursor.
func (p *Pruner) forget(ctx context.Context, keep, limit int64) (forgotten int64, err error) {
	err = pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		var transaction, position int64
		err := tx.QueryRow(ctx, `SELECT coalesce(max(transaction), 0), coalesce(max(position), 0) FROM bus_relays WHERE name = $1`, p.Relay).
			Scan(&transaction, &position)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM facts WHERE (transaction, position) IN (
				SELECT transaction, position FROM facts WHERE transaction <= $1::text::xid8 AND position <= $2 ORDER BY transaction, position LIMIT $3)`,
			strconv.FormatInt(transaction, 10), position-keep, limit)
		forgotten = tag.RowsAffected()
		return err
	})
	return forgotten, err
}
