package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// auditPage is how many events are audited at once.
const auditPage = 1000

// WriteAll writes missing lines: of events older than the
// audit, and of an old replica that is being replaced.
func WriteAll(ctx context.Context, pool *pgxpool.Pool, events *unitofwork.Events) error {
	behind, err := unaudited(ctx, pool)
	if err != nil {
		return fmt.Errorf("cannot find what the audit lacks: %w", err)
	}
	for _, organization := range behind {
		if err := auditBehind(ctx, pool, events, organization); err != nil {
			return err
		}
	}
	return nil
}

// unaudited lists the organizations with events that the audit lacks.
func unaudited(ctx context.Context, pool *pgxpool.Pool) (behind []string, err error) {
	err = pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT e.organization FROM events e GROUP BY e.organization
			HAVING max(e.position) > (SELECT coalesce(max(a.position), 0) FROM audit_events a WHERE a.organization = e.organization)`)
		if err != nil {
			return err
		}
		behind, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return behind, err
}

// auditBehind writes page by page, so that nobody waits long to append.
func auditBehind(ctx context.Context, pool *pgxpool.Pool, events *unitofwork.Events, organization string) error {
	for more := true; more; {
		err := pg.InTx(ctx, pool, func(tx pgx.Tx) (err error) {
			if err := actAs(ctx, tx, organization); err != nil {
				return err
			}
			if err := eventstorepg.LockAppends(ctx, tx); err != nil {
				return err
			}
			more, err = auditNext(ctx, tx, events, organization)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

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

// readActor reads the events of an actor. A service token
// that is none of the organization's is an operator's.
func (t *trail) readActor(ctx context.Context, tx pgx.Tx, origin tenants.Origin) ([]unitofwork.Recorded, error) {
	switch origin.Kind {
	case tenants.MemberActor:
		return t.events.ReadTx(ctx, tx, eventstore.Stream{Organization: t.organization, Name: "member/" + origin.Actor})
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
