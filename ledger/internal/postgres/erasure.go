package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
)

// Erasable are the tables with content that tenants sent or that is
// about them. The books stay: they hold ids and amounts.
func Erasable() []erasure.Table {
	return []erasure.Table{decisions(), erasure.Rows("grants", erasure.OfOrganization), erasure.Rows("budgets", erasure.OfOrganization),
		erasure.Rows("answers", erasure.OfOrganization),
		checkpointRows(), erasure.Rows("inbox_held", erasure.OfProject), erasure.Parked()}
}

// checkpointRows empties what checkpoints have of an organization. The
// hashes stay, so that those of others still hold.
func checkpointRows() erasure.Table {
	return erasure.Table{Name: "checkpoint_rows", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, _ string, _ int) (int64, string, error) {
		if of.Project != "" {
			return 0, "", nil
		}
		tag, err := tx.Exec(ctx, `UPDATE checkpoint_rows SET content = NULL WHERE organization = $1 AND content IS NOT NULL`, of.Organization)
		return tag.RowsAffected(), "", err
	}}
}

// decisions erases decisions. Their place stays, so an erased
// organization decides nothing more.
func decisions() erasure.Table {
	return erasure.Table{Name: "events", Erase: func(ctx context.Context, tx pgx.Tx, of erasure.Deletion, _ string, _ int) (int64, string, error) {
		if of.Project != "" {
			return 0, "", nil
		}
		if err := eventstorepg.LockAppends(ctx, tx); err != nil {
			return 0, "", err
		}
		erased, err := eventstorepg.EraseTx(ctx, tx, of.Organization, []string{decisionStream})
		if err != nil {
			return 0, "", err
		}
		if _, err := tx.Exec(ctx, `UPDATE organizations SET due_at = NULL, pool = 0, budgets = 0 WHERE organization = $1`, of.Organization); err != nil {
			return 0, "", fmt.Errorf("cannot end what is due about %q: %w", of.Organization, err)
		}
		return int64(len(erased)), "", nil
	}}
}
