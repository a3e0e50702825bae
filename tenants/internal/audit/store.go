package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

const selectAuditEvents = `
SELECT organization, sequence, at, action, actor_kind, actor, actor_name, role, address, client, request, target_kind, target,
	target_name, before, after, stream, version, position, hash, reduced_by
FROM audit_events `

func scanAuditEvent(row pgx.CollectableRow) (e tenants.AuditEvent, err error) {
	err = row.Scan(&e.Organization, &e.Sequence, &e.At, &e.Action, &e.Origin.Kind, &e.Origin.Actor, &e.ActorName, &e.Origin.Role,
		&e.Origin.Address, &e.Origin.Client, &e.Origin.Request, &e.Target.Kind, &e.Target.ID, &e.Target.Name, &e.Before, &e.After,
		&e.Stream, &e.Version, &e.Position, &e.Hash, &e.ReducedBy)
	return e, err
}

// matching is the condition of a filter for lines with numbers below before
// (0: all), and its arguments from $2 on.
func matching(f tenants.AuditFilter, before int64) (condition string, args []any) {
	condition = `WHERE ` + query.Visible
	add := func(given bool, clause string, value any) {
		if given {
			args = append(args, value)
			condition += fmt.Sprintf(" AND "+clause, len(args)+1)
		}
	}
	add(true, "organization = $%d", f.Organization)
	add(f.Actor != "", "actor = $%d", f.Actor)
	add(f.Action != "", "action = $%d", f.Action)
	add(f.Target != "", "target = $%d", f.Target)
	add(!f.From.IsZero(), "at >= $%d", f.From)
	add(!f.To.IsZero(), "at < $%d", f.To)
	add(before != 0, "sequence < $%d", before)
	return condition, args
}

// A Store reads audits.
type Store struct{ reader *query.Reader }

// NewStore returns the store of a reader.
func NewStore(reader *query.Reader) Store { return Store{reader} }

// Events lists at most limit lines of an audit, newest first,
// with numbers below before (0: all).
func (s Store) Events(ctx context.Context, as pg.Organization, filter tenants.AuditFilter, before int64, limit int) ([]tenants.AuditEvent, error) {
	condition, args := matching(filter, before)
	return query.List(ctx, s.reader, as, scanAuditEvent, selectAuditEvents+condition+fmt.Sprintf(` ORDER BY sequence DESC LIMIT %d`, limit), args...)
}

// Actions lists the actions in an audit. It reads one line of each.
func (s Store) Actions(ctx context.Context, as, organization pg.Organization) ([]string, error) {
	return query.List(ctx, s.reader, as, pgx.RowTo[string], `
		WITH RECURSIVE found AS (
			(SELECT action FROM audit_events WHERE `+query.Visible+` AND organization = $2 ORDER BY action LIMIT 1)
			UNION ALL
			SELECT (SELECT action FROM audit_events WHERE `+query.Visible+` AND organization = $2 AND action > found.action ORDER BY action LIMIT 1)
			FROM found WHERE found.action IS NOT NULL)
		SELECT action FROM found WHERE action IS NOT NULL`, organization)
}

// An Actor is an actor of an audit.
type Actor struct {
	ID   string
	Kind tenants.ActorKind
	Name string // in the last line
}

// maxActors is how many actors are listed at most.
const maxActors = 200

// Actors lists at most 200 actors of an
// audit, by id. It reads one line of each.
func (s Store) Actors(ctx context.Context, as, organization pg.Organization) ([]Actor, error) {
	return query.List(ctx, s.reader, as, pgx.RowToStructByPos[Actor], `
		WITH RECURSIVE found AS (
			(SELECT actor FROM audit_events WHERE `+query.Visible+` AND organization = $2 ORDER BY actor LIMIT 1)
			UNION ALL
			SELECT (SELECT actor FROM audit_events WHERE `+query.Visible+` AND organization = $2 AND actor > found.actor ORDER BY actor LIMIT 1)
			FROM found WHERE found.actor IS NOT NULL)
		SELECT last.actor, last.actor_kind, last.actor_name
		FROM (SELECT actor FROM found WHERE actor IS NOT NULL LIMIT $3) AS each, LATERAL (
			SELECT actor, actor_kind, actor_name FROM audit_events
			WHERE organization = $2 AND actor = each.actor ORDER BY sequence DESC LIMIT 1) AS last`, organization, maxActors)
}

// auditPage is how many events are audited at once.
const auditPage = 1000

func actAs(ctx context.Context, tx pgx.Tx, organization string) error {
	if organization == tenants.Installation {
		return pg.AsSystem(ctx, tx)
	}
	return pg.AsOrganization(ctx, tx, pg.Organization(organization))
}

// Write writes the lines of an organization's audit up to its newest
// event. The caller's transaction must hold the lock to append.
func Write(ctx context.Context, tx pgx.Tx, events *unitofwork.Events, organization string) error {
	for {
		more, err := auditNext(ctx, tx, events, organization)
		if err != nil || !more {
			return err
		}
	}
}

// auditNext writes one page of lines, and reports whether there may be more.
func auditNext(ctx context.Context, tx pgx.Tx, events *unitofwork.Events, organization string) (more bool, err error) {
	head, err := auditHead(ctx, tx, organization)
	if err != nil {
		return false, fmt.Errorf("cannot find the end of the audit of %q: %w", organization, err)
	}
	lines, _, err := newTrail(events, organization).next(ctx, tx, head)
	if err != nil {
		return false, fmt.Errorf("cannot audit events of %q: %w", organization, err)
	}
	for _, line := range lines {
		if err := insertAuditEvent(ctx, tx, line); err != nil {
			return false, fmt.Errorf("cannot write line %d of the audit of %q: %w", line.Sequence, organization, err)
		}
	}
	return len(lines) == auditPage, nil
}

// auditHead is the last line of an organization's
// audit, or what precedes the first.
func auditHead(ctx context.Context, tx pgx.Tx, organization string) (tenants.AuditEvent, error) {
	rows, err := tx.Query(ctx, selectAuditEvents+`WHERE organization = $1 ORDER BY sequence DESC LIMIT 1`, organization)
	if err != nil {
		return tenants.AuditEvent{}, err
	}
	lines, err := pgx.CollectRows(rows, scanAuditEvent)
	if err != nil || len(lines) == 0 {
		return tenants.AuditEvent{Hash: tenants.AuditStart}, err
	}
	return lines[0], nil
}

func insertAuditEvent(ctx context.Context, tx pgx.Tx, e tenants.AuditEvent) error {
	return query.ExactlyOne(ctx, tx, `
		INSERT INTO audit_events (organization, sequence, at, action, actor_kind, actor, actor_name, role, address, client,
			request, target_kind, target, target_name, before, after, stream, version, position, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
		e.Organization, e.Sequence, e.At, e.Action, e.Origin.Kind, e.Origin.Actor, e.ActorName, e.Origin.Role, e.Origin.Address,
		e.Origin.Client, e.Origin.Request, e.Target.Kind, e.Target.ID, e.Target.Name, e.Before, e.After, e.Stream, e.Version,
		e.Position, e.Hash)
}

// A trail derives the lines of one organization's
// audit from its events, in order.
type trail struct {
	events       *unitofwork.Events
	organization string
	subjects     map[string]tenants.Subject       // by stream, up to the last read event; bounded by the organization's things
	actors       map[string][]unitofwork.Recorded // their events, by id; bounded by the organization's people
}

func newTrail(events *unitofwork.Events, organization string) *trail {
	return &trail{events: events, organization: organization, subjects: map[string]tenants.Subject{}, actors: map[string][]unitofwork.Recorded{}}
}

// next returns the lines after head, one page at most, and their events.
func (t *trail) next(ctx context.Context, tx pgx.Tx, head tenants.AuditEvent) (lines []tenants.AuditEvent, events []tenants.Event, err error) {
	happened, err := t.events.ReadOf(ctx, tx, t.organization, eventstore.Cursor(head.Position), auditPage)
	if err != nil {
		return nil, nil, err
	}
	for _, event := range happened {
		line, err := t.line(ctx, tx, event)
		if err != nil {
			return nil, nil, fmt.Errorf("%q version %d: %w", event.Stream, event.Version, err)
		}
		head = line.Following(head.Sequence, head.Hash)
		lines, events = append(lines, head), append(events, event.Event)
	}
	return lines, events, nil
}

// line is the line about one event, without its
// number. Of an erased event it has only the number.
func (t *trail) line(ctx context.Context, tx pgx.Tx, r unitofwork.Recorded) (tenants.AuditEvent, error) {
	line := tenants.AuditEvent{
		Organization: t.organization, Origin: tenants.OriginOf(r.Metadata), Stream: r.Stream.Name, Version: r.Version,
		Position: int64(r.Cursor),
	}
	if r.Erased {
		return line, nil
	}
	before, err := t.before(ctx, tx, r)
	if err != nil {
		return line, err
	}
	subject, change := tenants.Audit(before, r.Event)
	t.subjects[r.Stream.Name] = subject
	line.ActorName, err = t.actorName(ctx, tx, line.Origin, r.Cursor)
	return line.With(change), err
}

// before is the subject before an event, nil for the
// first. It reads the stream again, which is short.
func (t *trail) before(ctx context.Context, tx pgx.Tx, r unitofwork.Recorded) (tenants.Subject, error) {
	if subject, known := t.subjects[r.Stream.Name]; known || r.Version == 1 {
		return subject, nil
	}
	history, err := t.events.ReadTx(ctx, tx, r.Stream)
	if err != nil {
		return nil, err
	}
	return fold(history, r.Cursor-1), nil
}

// fold is the subject of a stream up to a cursor, nil if there was none yet.
func fold(history []unitofwork.Recorded, until eventstore.Cursor) (subject tenants.Subject) {
	for _, r := range history {
		if r.Cursor > until {
			break
		}
		subject, _ = tenants.Audit(subject, r.Event)
	}
	return subject
}

// actorName is an actor's name at an event, including
// that event: people may create themselves.
func (t *trail) actorName(ctx context.Context, tx pgx.Tx, origin tenants.Origin, at eventstore.Cursor) (string, error) {
	history, known := t.actors[origin.Actor]
	if !known {
		var err error
		if history, err = t.readActor(ctx, tx, origin); err != nil {
			return "", err
		}
		t.actors[origin.Actor] = history
	}
	return tenants.ActorName(fold(history, at)), nil
}

// forgot reports whether the name of an API key was erased with its project:
// lines about others have it still.
func (t *trail) forgot(ctx context.Context, tx pgx.Tx, origin tenants.Origin) (erased bool, err error) {
	if origin.Kind != tenants.APIKeyActor || len(t.actors[origin.Actor]) > 0 {
		return false, nil
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events WHERE organization = $1 AND stream = $2 AND name = $3)`,
		t.organization, "api-key/"+origin.Actor, eventstorepg.ErasedName).Scan(&erased)
	return erased, err
}

// readActor reads the events of an actor. A service token
// that is none of the organization's is an operator's.
func (t *trail) readActor(ctx context.Context, tx pgx.Tx, origin tenants.Origin) ([]unitofwork.Recorded, error) {
	switch origin.Kind {
	case tenants.MemberActor:
		return t.events.ReadTx(ctx, tx, eventstore.Stream{Organization: t.organization, Name: "member/" + origin.Actor})
	case tenants.APIKeyActor:
		return t.events.ReadTx(ctx, tx, eventstore.Stream{Organization: t.organization, Name: "api-key/" + origin.Actor})
	case tenants.ServiceTokenActor:
		stream := eventstore.Stream{Organization: t.organization, Name: "service-token/" + origin.Actor}
		history, err := t.events.ReadTx(ctx, tx, stream)
		if err != nil || len(history) > 0 || t.organization == tenants.Installation {
			return history, err
		}
		stream.Organization = tenants.Installation
		return t.readOperator(ctx, tx, stream)
	}
	return nil, nil
}

// readOperator leaves the organization for
// one query of a token of the installation.
func (t *trail) readOperator(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) ([]unitofwork.Recorded, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	history, err := t.events.ReadTx(ctx, tx, stream)
	if err != nil {
		return nil, err
	}
	return history, pg.AsOrganization(ctx, tx, pg.Organization(t.organization))
}

// replacedBatch is how many lines one transaction removes.
const replacedBatch = 1000

// listReplaced are replaced events whose lines are gone,
// too: each remaining line needs the state before it.
const listReplaced = `
SELECT e.organization, e.stream, e.version FROM audit_anchors a JOIN events e ON e.organization = a.organization AND e.position <= a.position
  JOIN unnest($1::text[], $2::int[], $3::text[]) AS replaced (name, by, switch) USING (name)
 WHERE EXISTS (SELECT FROM events later WHERE later.organization = e.organization AND later.stream = e.stream
	AND later.version > e.version AND later.name = e.name AND later.position <= a.position
	AND (e.data ->> replaced.switch IS DISTINCT FROM 'true' OR later.data ->> replaced.switch = 'true') OFFSET replaced.by - 1)
 ORDER BY e.organization, e.stream, e.version LIMIT $4`

// pruneReplaced keeps streams of long-lived things
// short: of a passkey, each sign-in is an event.
func (e events) pruneReplaced(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	names, by, switches := replacedColumns()
	rows, err := tx.Query(ctx, listReplaced, names, by, switches, replacedBatch)
	if err != nil {
		return 0, false, err
	}
	gone, count, err := collectReplaced(rows)
	if err != nil || count == 0 {
		return 0, false, err
	}
	if err := e.withdraw(ctx, tx, gone); err != nil {
		return 0, false, err
	}
	for _, g := range gone {
		_, err := tx.Exec(ctx, `DELETE FROM events WHERE organization = $1 AND stream = $2 AND version = ANY($3)`, g.Stream.Organization, g.Stream.Name, g.Versions)
		if err != nil {
			return 0, false, err
		}
	}
	return count, count == replacedBatch, nil
}

func replacedColumns() (names []string, by []int, switches []string) {
	for _, event := range tenants.Events() {
		if replaced := tenants.ReplacementOf(event); replaced.By > 0 {
			names, by, switches = append(names, tenants.EventName(event)), append(by, replaced.By), append(switches, replaced.Switch)
		}
	}
	return names, by, switches
}

// collectReplaced groups versions by stream. Rows must be sorted by stream.
func collectReplaced(rows pgx.Rows) (gone []bus.Gone, count int64, err error) {
	var stream eventstore.Stream
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&stream.Organization, &stream.Name, &version}, func() error {
		if len(gone) == 0 || gone[len(gone)-1].Stream != stream {
			gone = append(gone, bus.Gone{Stream: stream})
		}
		last := &gone[len(gone)-1]
		last.Versions = append(last.Versions, version)
		count++
		return nil
	})
	return gone, count, err
}
