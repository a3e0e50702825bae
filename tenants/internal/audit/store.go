package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
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
