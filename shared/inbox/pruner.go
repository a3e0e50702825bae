package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
)

// keep is how long the inbox remembers a part: longer than any producer goes on sending it again.
const keep = 7 * 24 * time.Hour

// pruneInterval is how often a Pruner looks.
const pruneInterval = time.Hour

// A Pruner forgets what no longer matters, so that an inbox stays small.
type Pruner struct {
	Pool   *pgxpool.Pool
	Clock  func() time.Time
	Logger *slog.Logger
}

// Run prunes now and every hour until ctx ends. A failure is logged and tried again an hour later.
func (p *Pruner) Run(ctx context.Context) error {
	ticker := time.NewTicker(pruneInterval)
	defer ticker.Stop()
	for {
		if err := p.RunOnce(ctx); err != nil && ctx.Err() == nil {
			p.Logger.Warn("cannot prune the inbox", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// RunOnce prunes once.
func (p *Pruner) RunOnce(ctx context.Context) error {
	before := p.Clock().Add(-keep)
	return pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		if _, err := pg.DropDaysBefore(ctx, tx, "inbox", before); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM inbox_idempotency WHERE accepted_at < $1`, before); err != nil {
			return fmt.Errorf("cannot forget idempotency keys before %s: %w", before, err)
		}
		return nil
	})
}
