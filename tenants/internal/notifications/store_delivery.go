package notifications

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants/internal/query"
)

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
// subscribed to a fact and existed when it was published, at $7. When it
// happened, a test's clock or a client may have said.
var addFact = `
INSERT INTO deliveries (organization, id, webhook, project, type, body, created_at, state, failure, begun_at, next_at)
SELECT w.organization, 'msg_' || left(encode(sha256(convert_to($2 || E'\n' || w.id, 'UTF8')), 'hex'), 32), w.id, $3, $4, $5, $6,
       CASE WHEN w.off_at IS NULL THEN 'pending' ELSE 'failed' END, CASE WHEN w.off_at IS NULL THEN '' ELSE $8 END, $6, $6
  FROM webhooks w WHERE w.organization = $1 AND $4 = ANY (w.events) AND date_trunc('milliseconds', w.created_at) <= $7
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
SELECT ` + deliveryColumns + `, coalesce(w.url, ''), coalesce(w.key, ''), coalesce(w.generation, 0), coalesce(w.previous_key, ''),
       coalesce(w.previous_generation, 0), w.previous_ends, coalesce(m.email, ''), coalesce(m.name, ''), o.name, m.without_mails
  FROM taken d JOIN organizations o ON o.organization = d.organization LEFT JOIN webhooks w ON w.organization = d.organization AND w.id = d.webhook
  LEFT JOIN members m ON m.organization = d.organization AND m.id = d.member AND m.removed_at IS NULL AND m.role IN ('owner', 'billing')`

func scanDue(row pgx.CollectableRow) (d due, err error) {
	var attempted, previousEnds *time.Time
	err = row.Scan(append(d.fields(&attempted), &d.to.URL, &d.to.Secret.Key, &d.to.Secret.Generation, &d.to.Previous.Key, &d.to.Previous.Generation,
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
