package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/erasure"
)

// Holders returns whose books and budgets there are.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	rows, err := tx.Query(ctx, `SELECT organization, '' FROM organizations o
		WHERE NOT EXISTS (SELECT FROM erasures e WHERE e.organization = o.organization AND e.project = '')`)
	if err != nil {
		return nil, fmt.Errorf("cannot find whose books there are: %w", err)
	}
	booked, err := pgx.CollectRows(rows, pgx.RowToStructByPos[erasure.Deletion])
	if err != nil {
		return nil, fmt.Errorf("cannot find whose books there are: %w", err)
	}
	limited, err := erasure.Holders(ctx, tx, "budgets")
	return append(booked, limited...), err
}

// Holding returns how many bytes an organization or a project was charged,
// as far as days are kept.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	return erasure.Hold(ctx, tx, "bytes", of, `SELECT coalesce(sum(bytes), 0)::bigint, min(day), max(day) FROM usage_days
		WHERE organization = $1 AND ($2 = '' OR project = $2) AND outcome = $3`, ledger.UseAccepted)
}

// FirstPlan returns an organization's first plan. Without books or a plan,
// it has no tier.
func FirstPlan(ctx context.Context, tx pgx.Tx, organization string) (plan ledger.Plan, err error) {
	rows, err := tx.Query(ctx, `SELECT coalesce((plans->0->>'from')::timestamptz, opened_at), coalesce(plans->0->>'tier', '') FROM organizations
		WHERE organization = $1`, organization)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&plan.From, &plan.Tier}, func() error { return nil })
	}
	if err != nil {
		return plan, fmt.Errorf("cannot read how the books of %q began: %w", organization, err)
	}
	return plan, nil
}
