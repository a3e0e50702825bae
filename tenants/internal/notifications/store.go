package notifications

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func insertWebhook(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.WebhookCreated) error {
	return query.ExactlyOne(ctx, tx, `
INSERT INTO webhooks (organization, id, url, events, format, key, generation, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		e.Organization, e.Webhook, e.URL, e.Events, e.Format, e.Secret.Key, e.Secret.Generation, e.At)
}

func changeWebhook(ctx context.Context, tx pgx.Tx, at unitofwork.EventContext, e tenants.WebhookChanged) error {
	return query.ExactlyOne(ctx, tx, `UPDATE webhooks SET url = $3, events = $4, format = $5 WHERE organization = $1 AND id = $2`,
		at.Organization, e.Webhook, e.URL, e.Events, e.Format)
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

const webhookColumns = `organization, id, url, events, format, key, generation, previous_key, previous_generation, previous_ends, created_at, off_at,
	off_reason, taken_at`

func scanWebhook(row pgx.CollectableRow) (w Listed, err error) {
	var previousEnds, off, taken *time.Time
	err = row.Scan(&w.Organization, &w.ID, &w.URL, &w.Events, &w.Format, &w.Secret.Key, &w.Secret.Generation, &w.Previous.Key, &w.Previous.Generation,
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

const deliveryColumns = `d.organization, d.id, d.webhook, d.member, d.type, d.body, d.created_at, d.state, d.begun_at, d.next_at, d.attempts, d.attempted_at,
	d.status, d.answer, d.failure`

func (d *Delivery) fields(attempted **time.Time) []any {
	return []any{&d.Organization, &d.ID, &d.Webhook, &d.Member, &d.Type, &d.Body, &d.CreatedAt, &d.State, &d.BegunAt, &d.NextAt, &d.Attempts, attempted, &d.Status,
		&d.Answer, &d.Failure}
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var attempted *time.Time
	err = row.Scan(d.fields(&attempted)...)
	d.AttemptedAt = query.OrZero(attempted)
	return d, err
}

// Delivery returns one delivery to a webhook, or ErrNotFound.
func (s Store) Delivery(ctx context.Context, as pg.Organization, of Ref, id string) (Delivery, error) {
	return query.One(ctx, s.reader, as, scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries d
		WHERE `+query.Visible+` AND organization = $2 AND webhook = $3 AND id = $4`, of.Organization, of.ID, id)
}

// Deliveries lists at most limit deliveries to a
// webhook before a position, newest first, in any state
// if none is given. The zero position is before none.
func (s Store) Deliveries(ctx context.Context, as pg.Organization, of Ref, state State, before query.Position, limit int) ([]Delivery, error) {
	return query.List(ctx, s.reader, as, scanDelivery, `SELECT `+deliveryColumns+` FROM deliveries d
		WHERE `+query.Visible+` AND organization = $2 AND webhook = $3 AND ($4 = '' OR state = $4) AND ($6 = '' OR (created_at, id) < ($5, $6))
		ORDER BY created_at DESC, id DESC LIMIT $7`, of.Organization, of.ID, state, before.At, before.ID, limit)
}

// visible is the condition that neither the organization
// nor the project of a row is to be deleted.
const visible = `EXISTS (SELECT FROM organizations o WHERE o.organization = %[1]s.organization AND o.deletion = '')
	AND (%[2]s = '' OR EXISTS (SELECT FROM projects p WHERE p.organization = %[1]s.organization AND p.id = %[2]s AND p.deletion = ''))`

// addFact adds a delivery for each webhook of an organization that is
// subscribed to a fact, unless only those that it names get it, and existed when it was published, at $7. When it
// happened, a test's clock or a client may have said.
var addFact = `
INSERT INTO deliveries (organization, id, webhook, project, type, body, created_at, state, failure, begun_at, next_at)
SELECT w.organization, 'msg_' || left(encode(sha256(convert_to($2 || E'\n' || w.id, 'UTF8')), 'hex'), 32), w.id, $3, $4, $5, $6,
       CASE WHEN w.off_at IS NULL THEN 'pending' ELSE 'failed' END, CASE WHEN w.off_at IS NULL THEN '' ELSE $8 END, $6, $6
  FROM webhooks w WHERE w.organization = $1 AND ($4 = ANY (w.events) AND NOT $10::boolean OR w.id = ANY ($9)) AND date_trunc('milliseconds', w.created_at) <= $7
   AND ` + fmt.Sprintf(visible, "w", "$3::text") + `
ON CONFLICT (organization, id) DO NOTHING`

// addTest adds a delivery to one webhook that is on.
const addTest = `
INSERT INTO deliveries (organization, id, webhook, project, type, body, created_at, state, begun_at, next_at)
SELECT w.organization, $3, w.id, '', $4, $5, $6, 'pending', $6, $6 FROM webhooks w WHERE w.organization = $1 AND w.id = $2 AND w.off_at IS NULL
ON CONFLICT (organization, id) DO NOTHING`

// replayStatement queues deliveries to a webhook
// again, like new ones but with their ids.
const replayStatement = `
UPDATE deliveries SET state = 'pending', attempts = 0, begun_at = $3, next_at = $3, failure = ''
 WHERE organization = $1 AND webhook = $2 AND state <> 'pending' AND `

// claim claims due deliveries, at most $3, and moves their next
// attempt behind the end of this one: if the process dies, others
// claim them. No organization gets more than $2 with those under way,
// $6 of each of $5; who has fewest comes first. Rows are searched by
// project, so a project that is to be deleted costs one search.
var claim = `
WITH RECURSIVE waiting AS (
    (SELECT organization, project FROM deliveries WHERE state = 'pending' ORDER BY organization, project LIMIT 1)
    UNION ALL
    SELECT d.organization, d.project FROM waiting w
     CROSS JOIN LATERAL (SELECT organization, project FROM deliveries d WHERE d.state = 'pending' AND (d.organization, d.project) > (w.organization, w.project)
                          ORDER BY d.organization, d.project LIMIT 1) d
), shown AS (
    SELECT w.organization, w.project, coalesce(u.n, 0) AS n
      FROM waiting w LEFT JOIN unnest($5::text[], $6::integer[]) AS u (organization, n) USING (organization)
     WHERE ` + fmt.Sprintf(visible, "w", "w.project") + `
), oldest AS (
    SELECT d.organization, d.id, d.next_at, s.n + row_number() OVER (PARTITION BY d.organization ORDER BY d.next_at) AS turn
      FROM shown s CROSS JOIN LATERAL (SELECT e.organization, e.id, e.next_at FROM deliveries e
                                        WHERE e.organization = s.organization AND e.project = s.project AND e.state = 'pending' AND e.next_at <= $1
                                        ORDER BY e.next_at LIMIT greatest($2 - s.n, 0)) d
), claimed AS (
    SELECT d.organization, d.id FROM deliveries d JOIN oldest USING (organization, id)
     WHERE oldest.turn <= $2 AND d.state = 'pending' AND d.next_at <= $1 ORDER BY oldest.turn, oldest.next_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED
), taken AS (
    UPDATE deliveries d SET next_at = $4, attempts = attempts + 1, attempted_at = $1 FROM claimed c
     WHERE d.organization = c.organization AND d.id = c.id RETURNING d.*
)
SELECT ` + deliveryColumns + `, coalesce(w.url, ''), coalesce(w.format, ''), coalesce(w.key, ''), coalesce(w.generation, 0), coalesce(w.previous_key, ''),
       coalesce(w.previous_generation, 0), w.previous_ends, coalesce(m.email, ''), coalesce(m.name, ''), o.name, m.without_mails
  FROM taken d JOIN organizations o ON o.organization = d.organization LEFT JOIN webhooks w ON w.organization = d.organization AND w.id = d.webhook
  LEFT JOIN members m ON m.organization = d.organization AND m.id = d.member AND m.removed_at IS NULL
       AND (m.role IN ('owner', 'billing') OR d.type LIKE 'search_alert.%' OR d.type LIKE 'error_alert.%' OR d.type = 'error_group.mentioned')`

func scanDue(row pgx.CollectableRow) (d due, err error) {
	var attempted, previousEnds *time.Time
	err = row.Scan(append(d.fields(&attempted), &d.to.URL, &d.to.Format, &d.to.Secret.Key, &d.to.Secret.Generation, &d.to.Previous.Key, &d.to.Previous.Generation,
		&previousEnds, &d.reader.email, &d.reader.name, &d.reader.organization, &d.reader.without)...)
	d.AttemptedAt, d.to.PreviousEnds = query.OrZero(attempted), query.OrZero(previousEnds)
	d.to.Organization, d.to.ID = d.Organization, d.Webhook
	return d, err
}

// settle stores the outcome of an attempt,
// unless another one has begun since.
const settle = `
UPDATE deliveries SET state = $5, next_at = $6, status = $7, answer = $8, failure = $9
 WHERE organization = $1 AND id = $2 AND attempts = $3 AND attempted_at = $4 AND state = 'pending'`

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
