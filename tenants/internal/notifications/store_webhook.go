package notifications

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertWebhook(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.WebhookCreated) error {
	return query.ExactlyOne(ctx, tx, `INSERT INTO webhooks (organization, id, url, events, key, generation, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		e.Organization, e.Webhook, e.URL, e.Events, e.Secret.Key, e.Secret.Generation, e.At)
}

func changeWebhook(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.WebhookChanged) error {
	return query.ExactlyOne(ctx, tx, `UPDATE webhooks SET url = $3, events = $4 WHERE organization = $1 AND id = $2`, at.Organization, e.Webhook, e.URL, e.Events)
}

func rotateWebhook(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.WebhookRotated) error {
	return query.ExactlyOne(ctx, tx, `UPDATE webhooks SET previous_key = key, previous_generation = generation, previous_ends = $5, key = $3, generation = $4
		WHERE organization = $1 AND id = $2`, at.Organization, e.Webhook, e.Secret.Key, e.Secret.Generation, e.PreviousEnds)
}

// switchWebhook fails what is queued for a webhook that
// is switched off: it can be replayed once it is on.
func switchWebhook(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.WebhookSwitched) error {
	var off *time.Time
	if !e.On {
		off = &e.At
		if _, err := tx.Exec(ctx, `UPDATE deliveries SET state = 'failed', failure = $3 WHERE organization = $1 AND webhook = $2 AND state = 'pending'`,
			at.Organization, e.Webhook, failureOff); err != nil {
			return err
		}
	}
	return query.ExactlyOne(ctx, tx, `UPDATE webhooks SET off_at = $3, off_reason = $4 WHERE organization = $1 AND id = $2`,
		at.Organization, e.Webhook, off, e.Reason)
}

func deleteWebhook(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.WebhookDeleted) error {
	if _, err := tx.Exec(ctx, `DELETE FROM deliveries WHERE organization = $1 AND webhook = $2`, at.Organization, e.Webhook); err != nil {
		return err
	}
	return query.ExactlyOne(ctx, tx, `DELETE FROM webhooks WHERE organization = $1 AND id = $2`, at.Organization, e.Webhook)
}

// Projections maps the events of webhooks to their tables.
func Projections() unitofwork.Projections {
	return unitofwork.Join(
		unitofwork.On(insertWebhook), unitofwork.On(changeWebhook), unitofwork.On(rotateWebhook), unitofwork.On(switchWebhook), unitofwork.On(deleteWebhook),
	)
}

// A Store reads webhooks and deliveries.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// A Ref identifies a webhook.
type Ref struct{ Organization, ID string }

// A Listed is a webhook with the state of its deliveries.
type Listed struct {
	tenants.Webhook
	TakenAt time.Time // when it last accepted one; zero: never
}

// Ref identifies it.
func (w Listed) Ref() Ref { return Ref{w.Organization, w.ID} }

const webhookColumns = `organization, id, url, events, key, generation, previous_key, previous_generation, previous_ends, created_at, off_at,
	off_reason, taken_at`

func scanWebhook(row pgx.CollectableRow) (w Listed, err error) {
	var previousEnds, off, taken *time.Time
	err = row.Scan(&w.Organization, &w.ID, &w.URL, &w.Events, &w.Secret.Key, &w.Secret.Generation, &w.Previous.Key, &w.Previous.Generation,
		&previousEnds, &w.CreatedAt, &off, &w.OffReason, &taken)
	w.PreviousEnds, w.OffAt, w.TakenAt = query.OrZero(previousEnds), query.OrZero(off), query.OrZero(taken)
	return w, err
}

// Webhook returns one webhook, or ErrNotFound.
func (s Store) Webhook(ctx context.Context, as pg.Organization, of Ref) (Listed, error) {
	return query.One(ctx, s.reader, as, scanWebhook, `SELECT `+webhookColumns+` FROM webhooks WHERE `+query.Visible+` AND organization = $2 AND id = $3`,
		of.Organization, of.ID)
}

// Webhooks lists at most limit webhooks of an organization after a position.
func (s Store) Webhooks(ctx context.Context, as pg.Organization, organization string, after query.Position, limit int) ([]Listed, error) {
	return query.List(ctx, s.reader, as, scanWebhook, `SELECT `+webhookColumns+` FROM webhooks
		WHERE `+query.Visible+` AND organization = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5`, organization, after.At, after.ID, limit)
}

// count is how many webhooks an organization has.
func count(ctx context.Context, in *query.Reader, organization pg.Organization, _ tenants.Countable, _ time.Time) (int, error) {
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM webhooks WHERE organization = $1`)
}
