package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Organizations finds organizations that a caller may access.
type Organizations interface {
	Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error)
}

// A Service serves audits.
type Service struct {
	store         Store
	organizations Organizations
}

// NewService returns a service.
func NewService(store Store, organizations Organizations) *Service {
	return &Service{store, organizations}
}

// Events lists lines of the audit of an organization that the
// caller may access, or of the installation, newest first, with
// numbers below before (0: all). Operators see what is left of
// a deleted one's. Invalid for a filter that no line can match.
func (s *Service) Events(ctx context.Context, caller tenants.Caller, filter tenants.AuditFilter, before int64, limit int) ([]tenants.AuditEvent, error) {
	if err := filter.Check(); err != nil {
		return nil, err
	}
	var unknown error
	if filter.Organization != tenants.Installation || !caller.IsOperator() {
		_, unknown = s.organizations.Organization(ctx, caller, filter.Organization)
	}
	if unknown != nil && (!caller.IsOperator() || !errors.Is(unknown, tenants.ErrNotFound)) {
		return nil, unknown
	}
	lines, err := s.store.Events(ctx, pg.Organization(caller.Organization), filter, before, limit)
	if err == nil && len(lines) == 0 {
		err = unknown
	}
	return lines, err
}

// Audited lists the organizations that have an audit, or
// events without one; the Installation is one of them.
func Audited(ctx context.Context, pool *pgxpool.Pool) (organizations []string, err error) {
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT organization FROM events UNION SELECT organization FROM audit_events ORDER BY 1`)
		if err != nil {
			return err
		}
		organizations, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return organizations, err
}

// Check compares the audit of an organization, or of the
// Installation, with its events, all as of one instant.
func Check(ctx context.Context, pool *pgxpool.Pool, events *unitofwork.Events, organization string) (check tenants.AuditCheck, err error) {
	err = pg.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := actAs(ctx, tx, organization); err != nil {
			return err
		}
		last, err := checkLines(ctx, tx, newTrail(events, organization), &check)
		if err != nil {
			return err
		}
		return checkRest(ctx, tx, organization, last, &check)
	})
	if err != nil {
		err = fmt.Errorf("cannot check the audit of %q: %w", organization, err)
	}
	return check, err
}

// checkLines checks the lines that follow from
// the events, and returns the number of the last.
func checkLines(ctx context.Context, tx pgx.Tx, trail *trail, check *tenants.AuditCheck) (last int64, err error) {
	head, err := anchorOf(ctx, tx, trail.organization)
	if err != nil {
		return 0, err
	}
	if head.Sequence > 0 {
		check.Begin(head.Sequence, head.Hash)
	}
	for {
		lines, events, err := trail.next(ctx, tx, head)
		if err != nil || len(lines) == 0 {
			return head.Sequence, err
		}
		kept, err := auditLines(ctx, tx, trail.organization, head.Sequence, len(lines))
		if err != nil {
			return 0, err
		}
		for i, line := range lines {
			forgot, err := trail.forgot(ctx, tx, line.Origin)
			if err != nil {
				return 0, err
			}
			if of := kept[line.Sequence]; of != nil && forgot {
				line.ActorName = of.ActorName
			}
			check.Next(line.Sequence, kept[line.Sequence], &line)
			check.Deleted(line.Sequence, events[i])
		}
		head = lines[len(lines)-1]
	}
}

// checkRest checks the lines that follow from no event.
func checkRest(ctx context.Context, tx pgx.Tx, organization string, last int64, check *tenants.AuditCheck) error {
	rows, err := tx.Query(ctx, selectAuditEvents+`WHERE organization = $1 AND sequence > $2 ORDER BY sequence`, organization, last)
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, scanAuditEvent)
	for _, line := range lines {
		check.Next(line.Sequence, &line, nil)
	}
	check.End()
	return err
}

// auditLines returns the lines after one with a number, up to numbers later.
func auditLines(ctx context.Context, tx pgx.Tx, organization string, after int64, numbers int) (map[int64]*tenants.AuditEvent, error) {
	rows, err := tx.Query(ctx, selectAuditEvents+`WHERE organization = $1 AND sequence > $2 AND sequence <= $2 + $3`,
		organization, after, int64(numbers))
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, scanAuditEvent)
	kept := make(map[int64]*tenants.AuditEvent, len(lines))
	for _, line := range lines {
		kept[line.Sequence] = &line
	}
	return kept, err
}
