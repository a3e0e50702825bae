package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

func requestDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionRequested) error {
	err := query.ExactlyOne(ctx, tx, `
		INSERT INTO deletions (organization, id, project, state, requested_at, begins_at, gone_by) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (organization, id) DO UPDATE SET state = $4, requested_at = $5, begins_at = $6, gone_by = $7`,
		e.Organization, e.ID(), e.Project, tenants.Deleting, e.At, e.BeginsAt, e.BeginsAt.Add(tenants.ErasureTimeout))
	if err != nil {
		return err
	}
	return hide(ctx, tx, e.Deletable, e.ID(), "")
}

func cancelDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionCancelled) error {
	if err := changeDeletion(ctx, tx, e.Deletable, `state = $3`, tenants.DeletionCancelledState); err != nil {
		return err
	}
	return hide(ctx, tx, e.Deletable, "", e.ID())
}

// hide hides what is to be deleted, or shows it
// again. It may be gone when the tables are rebuilt.
func hide(ctx context.Context, tx pgx.Tx, of tenants.Deletable, by, from string) error {
	if of.Project == "" {
		if _, err := tx.Exec(ctx, `UPDATE organizations SET deletion = $2 WHERE organization = $1`, of.Organization, by); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE projects SET deletion = $3 WHERE organization = $1 AND ($2 = '' OR id = $2) AND deletion = $4`,
		of.Organization, of.Project, by, from)
	return err
}

func beginDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionBegun) error {
	if err := changeDeletion(ctx, tx, e.Deletable, `state = $3, gone_by = $4`, tenants.Erasing, e.GoneBy); err != nil {
		return err
	}
	return erasure.Begin(ctx, tx, erasure.Deletion{Organization: e.Organization, Project: e.Project}, e.At, e.GoneBy)
}

func finishDeletion(ctx context.Context, tx pgx.Tx, _ unitofwork.EventContext, e tenants.DeletionFinished) error {
	removed, err := json.Marshal(e.Removed)
	if err != nil {
		return err
	}
	return changeDeletion(ctx, tx, e.Deletable, `state = $3, finished_at = $4, removed = $5::jsonb`, tenants.Gone, e.At, string(removed))
}

func changeDeletion(ctx context.Context, tx pgx.Tx, of tenants.Deletable, change string, args ...any) error {
	return query.ExactlyOne(ctx, tx, `UPDATE deletions SET `+change+` WHERE organization = $1 AND id = $2`, append([]any{of.Organization, of.ID()}, args...)...)
}

// KeepErased stores a module's report. tx must
// act as the system. Repeated reports are equal.
func KeepErased(ctx context.Context, tx pgx.Tx, of tenants.Deletable, module string, removed map[string]int64) error {
	text, err := json.Marshal(map[string]map[string]int64{module: removed})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE deletions SET removed = removed || $3::jsonb WHERE organization = $1 AND id = $2 AND state = 'erasing'`,
		of.Organization, of.ID(), string(text))
	return err
}

// A ListedDeletion is a deletion and the rows removed so far.
type ListedDeletion struct {
	tenants.Deletable
	State       tenants.DeletionState
	RequestedAt time.Time
	BeginsAt    time.Time
	GoneBy      time.Time
	FinishedAt  time.Time // zero: not finished
	Removed     map[string]map[string]int64
}

const selectDeletions = `SELECT organization, project, state, requested_at, begins_at, gone_by, finished_at, removed FROM deletions `

func scanDeletion(row pgx.CollectableRow) (d ListedDeletion, err error) {
	var finished *time.Time
	var removed []byte
	if err := row.Scan(&d.Organization, &d.Project, &d.State, &d.RequestedAt, &d.BeginsAt, &d.GoneBy, &finished, &removed); err != nil {
		return d, err
	}
	d.FinishedAt = query.OrZero(finished)
	if err := json.Unmarshal(removed, &d.Removed); err != nil {
		return d, fmt.Errorf("cannot read what was removed of %q: %w", d.ID(), err)
	}
	return d, nil
}

// Deletion returns the deletion of an organization or project, or ErrNotFound.
func (s Store) Deletion(ctx context.Context, as pg.Organization, id string) (ListedDeletion, error) {
	return query.One(ctx, s.reader, as, scanDeletion, selectDeletions+`WHERE `+query.Visible+` AND id = $2`, id)
}

// Deletions lists at most limit deletions of an organization and
// its projects after a position.
func (s Store) Deletions(ctx context.Context, as, organization pg.Organization, after query.Position, limit int) ([]ListedDeletion, error) {
	return query.List(ctx, s.reader, as, scanDeletion, selectDeletions+
		`WHERE `+query.Visible+` AND organization = $2 AND (requested_at, id) > ($3, $4) ORDER BY requested_at, id LIMIT $5`,
		organization, after.At, after.ID, limit)
}

// DueDeletions lists at most limit deletions, of all
// organizations, that are due and have not begun.
func (s Store) DueDeletions(ctx context.Context, now time.Time, limit int) ([]ListedDeletion, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanDeletion, selectDeletions+
		`WHERE `+query.Visible+` AND state = 'deleting' AND begins_at <= $2 ORDER BY begins_at LIMIT $3`, now, limit)
}

// ReportedDeletions lists at most limit unfinished deletions,
// of all organizations, that all the modules have reported.
func (s Store) ReportedDeletions(ctx context.Context, modules []string, limit int) ([]ListedDeletion, error) {
	return query.List(ctx, s.reader, tenants.Installation, scanDeletion, selectDeletions+
		`WHERE `+query.Visible+` AND state = 'erasing' AND removed ?& $2::text[] ORDER BY begins_at LIMIT $3`, modules, limit)
}

// UnfinishedDeletions are how many begun deletions are
// not finished, and how many of these are overdue.
type UnfinishedDeletions struct{ All, Overdue int }

// UnfinishedDeletions counts those of all organizations.
func (s Store) UnfinishedDeletions(ctx context.Context, now time.Time) (UnfinishedDeletions, error) {
	return query.One(ctx, s.reader, tenants.Installation, pgx.RowToStructByPos[UnfinishedDeletions], `SELECT count(*), count(*) FILTER (WHERE gone_by < $2)
		FROM deletions WHERE `+query.Visible+` AND state IN ('deleting', 'erasing') AND begins_at <= $2`, now)
}

// hasDeletion reads the deletion of an organization
// itself, even of a hidden or deleted one.
func (s Store) hasDeletion(ctx context.Context, as pg.Organization, organization string) (bool, error) {
	_, err := s.Deletion(ctx, as, organization)
	if errors.Is(err, tenants.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
