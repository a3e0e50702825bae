package notifications

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// kept is how long a delivery, and an answer to a
// request with an Idempotency-Key, is kept; perWebhook
// is how many deliveries one webhook keeps.
const (
	kept       = 30 * 24 * time.Hour
	perWebhook = 10_000
	batchSize  = 10_000 // beyond perWebhook, removed in one transaction
)

// Tables are the room's tables whose rows age.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{
		oldDeliveries{prune.Rows{
			Table: "deliveries", Bound: "30 days, and 10,000 of each webhook", Age: "created_at", Before: prune.Ago(kept, clock),
		}, perWebhook, batchSize},
		prune.Rows{Table: "webhook_answers", Bound: "30 days", Age: "answered_at", Before: prune.Ago(kept, clock), AppendOnly: true},
	}
}

// oldDeliveries are old deliveries, and the oldest of webhooks with too many.
type oldDeliveries struct {
	prune.Rows
	perWebhook, batchSize int
}

const crowded = `
DELETE FROM deliveries WHERE ctid = ANY (ARRAY(
	SELECT d.ctid FROM webhooks w CROSS JOIN LATERAL (
		SELECT e.created_at, e.id FROM deliveries e WHERE e.organization = w.organization AND e.webhook = w.id
		 ORDER BY e.created_at DESC, e.id DESC OFFSET $1 LIMIT 1) edge
	  JOIN deliveries d ON d.organization = w.organization AND d.webhook = w.id AND (d.created_at, d.id) <= (edge.created_at, edge.id)
	 LIMIT $2 FOR UPDATE OF d SKIP LOCKED))`

// Prune implements prune.Table.
func (o oldDeliveries) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if removed, more, err = o.Rows.Prune(ctx, tx); err != nil || more {
		return removed, more, err
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return removed, false, err
	}
	tag, err := tx.Exec(ctx, crowded, o.perWebhook, o.batchSize)
	return removed + tag.RowsAffected(), tag.RowsAffected() == int64(o.batchSize), err
}

// Fixed are the bounds of the other tables.
func Fixed() []prune.Bound {
	return []prune.Bound{{Table: "webhooks", Keeps: "20 of an organization", By: "WEIR_MAX_WEBHOOKS"}}
}

// Erasable are the room's tables, in the order of erasure.
func Erasable() []erasure.Table {
	return []erasure.Table{
		erasure.Rows("webhooks", erasure.OfOrganization), erasure.Rows("webhook_answers", erasure.OfOrganization), erasure.Rows("deliveries", erasure.OfProject),
	}
}
