package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// Withdraw withdraws what was published of events, before they are removed.
type Withdraw func(ctx context.Context, tx pgx.Tx, gone []bus.Gone) error

// Tables are the audit and its events, for a
// prune.Pruner. Lines are kept for a time.
func Tables(clock func() time.Time, kept time.Duration, withdraw Withdraw) []prune.Table {
	return []prune.Table{oldLines{prune.Ago(kept, clock), kept}, events{withdraw}}
}

// Fixed are the bounds of the other tables.
func Fixed() []prune.Bound {
	return []prune.Bound{{Table: "audit_anchors", Keeps: "a row for each organization, and each deletion that is known", By: "tenants/internal/erasing"}}
}

// oldLines are the lines of audits. An audit begins
// at its anchor, and its newest line always stays.
type oldLines struct {
	before func() time.Time
	kept   time.Duration
}

func (oldLines) Name() string { return "audit_events" }

func (l oldLines) Keeps() string {
	return fmt.Sprintf("%.0f days, and the newest line of each organization", l.kept.Hours()/24)
}

// lineBatch is how many lines of each organization one transaction removes.
const lineBatch = 1000

// setAnchors moves each anchor to the line before the first that stays.
const setAnchors = `
INSERT INTO audit_anchors AS a (organization, sequence, position, hash, at)
SELECT line.organization, line.sequence, line.position, line.hash, line.at
  FROM (SELECT organization FROM organizations UNION SELECT organization FROM deletions UNION SELECT '*') o
 CROSS JOIN LATERAL (SELECT sequence, at FROM audit_events e WHERE e.organization = o.organization ORDER BY sequence LIMIT 1) oldest
 CROSS JOIN LATERAL (SELECT coalesce(
	(SELECT sequence FROM audit_events e WHERE e.organization = o.organization AND e.at >= $1 ORDER BY e.at LIMIT 1),
	(SELECT max(sequence) FROM audit_events e WHERE e.organization = o.organization)) AS sequence) stays
  JOIN audit_events line ON line.organization = o.organization AND line.sequence = least(stays.sequence, oldest.sequence + $2) - 1
 WHERE oldest.at < $1 AND stays.sequence > oldest.sequence
ON CONFLICT (organization) DO UPDATE SET sequence = excluded.sequence, position = excluded.position, hash = excluded.hash, at = excluded.at`

func (l oldLines) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	anchored, err := tx.Exec(ctx, setAnchors, l.before(), lineBatch)
	if err != nil || anchored.RowsAffected() == 0 {
		return 0, false, err
	}
	gone, err := tx.Exec(ctx, `DELETE FROM audit_events e USING audit_anchors a WHERE e.organization = a.organization AND e.sequence <= a.sequence`)
	return gone.RowsAffected(), true, err
}

func (oldLines) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return oldest(ctx, tx, `SELECT min(e.at) FROM (SELECT organization FROM organizations UNION SELECT organization FROM deletions UNION SELECT '*') o
		CROSS JOIN LATERAL (SELECT at FROM audit_events e WHERE e.organization = o.organization ORDER BY at LIMIT 1) e`)
}

// events are removed by stream where a thing has ended, and one by
// one where later ones replace them; each once its line is removed.
type events struct{ withdraw Withdraw }

func (events) Name() string { return "events" }

func (events) Keeps() string {
	return "of each thing that there is what made it as it is, and what happened to any as long as the audit tells of it"
}

func (e events) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	if removed, err = e.pruneEnded(ctx, tx); err != nil || removed > 0 {
		return removed, true, err
	}
	return e.pruneReplaced(ctx, tx)
}

// streamBatch is how many streams one transaction removes.
const streamBatch = 500

func (e events) pruneEnded(ctx context.Context, tx pgx.Tx) (removed int64, err error) {
	rows, err := tx.Query(ctx, listEnded, streamBatch)
	if err != nil {
		return 0, err
	}
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[eventstore.Stream])
	if err != nil || len(ended) == 0 {
		return 0, err
	}
	gone := make([]bus.Gone, len(ended))
	for i, stream := range ended {
		gone[i].Stream = stream
	}
	if err := e.withdraw(ctx, tx, gone); err != nil {
		return 0, err
	}
	return removeEnded(ctx, tx, ended)
}

// listEnded are streams of sessions, invitations, failed sign-ins, reports,
// and of things that no table shows any more. Who acted stays while lines
// name it, an operator's token while any organization's do: the newest line
// of a quiet one stays forever, and is checked against that name.
const listEnded = `
SELECT e.organization, e.stream FROM audit_anchors a JOIN events e ON e.organization = a.organization AND e.position <= a.position
 CROSS JOIN LATERAL (SELECT split_part(e.stream, '/', 1) AS noun, split_part(e.stream, '/', 2) AS id) thing
 WHERE CASE noun WHEN 'session' THEN true WHEN 'invitation' THEN true WHEN 'sign-in-failures' THEN true WHEN 'report' THEN true
	WHEN 'api-key' THEN NOT EXISTS (SELECT FROM api_keys t WHERE t.organization = e.organization AND t.id = thing.id)
	WHEN 'service-token' THEN NOT EXISTS (SELECT FROM service_tokens t WHERE t.organization = e.organization AND t.id = thing.id)
		AND (e.organization <> '*' OR NOT EXISTS (
			SELECT FROM (SELECT organization FROM organizations UNION SELECT organization FROM deletions) o
			JOIN audit_events line ON line.organization = o.organization AND line.actor = thing.id))
	WHEN 'webhook' THEN NOT EXISTS (SELECT FROM webhooks t WHERE t.organization = e.organization AND t.id = thing.id)
	WHEN 'member' THEN NOT EXISTS (SELECT FROM members t WHERE t.organization = e.organization AND t.id = thing.id)
	WHEN 'project' THEN NOT EXISTS (SELECT FROM projects t WHERE t.organization = e.organization AND t.id = thing.id)
	WHEN 'deletion' THEN NOT EXISTS (SELECT FROM deletions t WHERE t.organization = e.organization AND t.id = thing.id)
	WHEN 'passkey' THEN NOT EXISTS (SELECT FROM passkeys t WHERE t.organization = e.organization AND t.id = thing.id)
	ELSE false END
   AND NOT EXISTS (SELECT FROM audit_events line WHERE line.organization = e.organization AND line.actor = thing.id)
   AND NOT EXISTS (SELECT FROM events earlier WHERE earlier.organization = e.organization AND earlier.stream = e.stream AND earlier.version < e.version)
   AND NOT EXISTS (SELECT FROM events later WHERE later.organization = e.organization AND later.stream = e.stream AND later.position > a.position)
 LIMIT $1`

// removeEnded keeps what was appended meanwhile.
func removeEnded(ctx context.Context, tx pgx.Tx, ended []eventstore.Stream) (int64, error) {
	organizations, names := make([]string, len(ended)), make([]string, len(ended))
	for i, stream := range ended {
		organizations[i], names[i] = stream.Organization, stream.Name
	}
	tag, err := tx.Exec(ctx, `DELETE FROM events e USING unnest($1::text[], $2::text[]) s (organization, stream), audit_anchors a
		WHERE e.organization = s.organization AND e.stream = s.stream AND a.organization = s.organization AND e.position <= a.position`, organizations, names)
	return tag.RowsAffected(), err
}

// Oldest is the first line after an anchor, as events have no age.
func (events) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return oldest(ctx, tx, `SELECT min(at) FROM audit_anchors`)
}

func oldest(ctx context.Context, tx pgx.Tx, query string) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var at *time.Time
	if err := tx.QueryRow(ctx, query).Scan(&at); err != nil || at == nil {
		return time.Time{}, err
	}
	return *at, nil
}

// anchorOf is where the audit of an organization begins.
func anchorOf(ctx context.Context, tx pgx.Tx, organization string) (tenants.AuditEvent, error) {
	anchor := tenants.AuditEvent{Hash: tenants.AuditStart}
	err := tx.QueryRow(ctx, `SELECT sequence, position, hash FROM audit_anchors WHERE organization = $1`, organization).
		Scan(&anchor.Sequence, &anchor.Position, &anchor.Hash)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return anchor, err
}

// Reduce reduces the lines about an organization's
// erased events to who did what to what, by id.
func Reduce(ctx context.Context, tx pgx.Tx, organization, deletion string, events []eventstore.Cursor) error {
	_, err := tx.Exec(ctx, `UPDATE audit_events SET actor_name = '', address = '', client = '', request = '', target_name = '', before = '', after = '',
			reduced_by = $2
		WHERE organization = $1 AND position = ANY($3) AND reduced_by = ''`, organization, deletion, events)
	if err != nil {
		return fmt.Errorf("cannot reduce %d lines of the audit of %q: %w", len(events), organization, err)
	}
	return nil
}

// ReduceActors removes people from the lines about an
// organization's streams whose names begin with prefix.
// Their events stay, with as little of their origin.
func ReduceActors(ctx context.Context, tx pgx.Tx, organization, deletion, prefix string) error {
	_, err := tx.Exec(ctx, `UPDATE events SET metadata = json_strip_nulls(json_build_object('actor', metadata->'actor', 'actor_kind', metadata->'actor_kind',
			'role', metadata->'role'))
		WHERE organization = $1 AND starts_with(stream, $2)`, organization, prefix)
	if err != nil {
		return fmt.Errorf("cannot reduce the origins of deletions of %q: %w", organization, err)
	}
	_, err = tx.Exec(ctx, `UPDATE audit_events SET actor_name = '', address = '', client = '', request = '', reduced_by = $2
		WHERE organization = $1 AND starts_with(stream, $3) AND reduced_by = ''`, organization, deletion, prefix)
	if err != nil {
		return fmt.Errorf("cannot reduce the lines about deletions of %q: %w", organization, err)
	}
	return nil
}

// Reduced adds up the lines of an organization reduced by a deletion.
func Reduced(ctx context.Context, tx pgx.Tx, organization, deletion string) (reduction tenants.Reduction, err error) {
	rows, err := tx.Query(ctx, selectAuditEvents+`WHERE organization = $1 AND reduced_by = $2 ORDER BY sequence`, organization, deletion)
	if err != nil {
		return reduction, err
	}
	defer rows.Close()
	for rows.Next() {
		line, err := scanAuditEvent(rows)
		if err != nil {
			return reduction, err
		}
		reduction.Add(line)
	}
	return reduction, rows.Err()
}

// anchorAtEnd moves the anchor to the last line, so that all may go.
const anchorAtEnd = `INSERT INTO audit_anchors AS a (organization, sequence, position, hash, at)
	SELECT organization, sequence, position, hash, at FROM audit_events WHERE organization = $1 ORDER BY sequence DESC LIMIT 1
	ON CONFLICT (organization) DO UPDATE SET sequence = excluded.sequence, position = excluded.position, hash = excluded.hash, at = excluded.at`

// Forget removes what is left of a long deleted organization: the
// places of its events, and its last line. tx must act as the system.
func Forget(ctx context.Context, tx pgx.Tx, organization string) error {
	for _, statement := range []string{
		anchorAtEnd, `DELETE FROM audit_events WHERE organization = $1`, `DELETE FROM audit_anchors WHERE organization = $1`,
		`DELETE FROM events WHERE organization = $1`,
	} {
		if _, err := tx.Exec(ctx, statement, organization); err != nil {
			return fmt.Errorf("cannot forget the audit of %q: %w", organization, err)
		}
	}
	return nil
}
