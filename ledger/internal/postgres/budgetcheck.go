package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// budgetsAndUsage compares used budgets with the usage of their
// projects and keys, where a condition holds. A budget without charges
// since stays in an earlier period.
func budgetsAndUsage(condition string) string {
	return `SELECT concat_ws(', ', b.organization, nullif(b.project, ''), nullif(b.key, '')), b.used, coalesce(sum(u.bytes), 0)::bigint
		FROM budgets b
		JOIN books k ON k.organization = b.organization AND k.period_start = b.period_start
		LEFT JOIN usage_days u ON u.organization = b.organization AND u.outcome = 'accepted'
			AND u.day >= (b.period_start AT TIME ZONE 'UTC')::date AND u.day < (k.period_end AT TIME ZONE 'UTC')::date
			AND CASE WHEN b.key <> '' THEN u.key = b.key ELSE u.project = b.project END
		WHERE ` + condition + ` GROUP BY b.organization, b.project, b.key, b.used HAVING b.used <> coalesce(sum(u.bytes), 0)`
}

// verifyBudgets compares all budgets.
func verifyBudgets(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.BudgetIsUsage, budgetsAndUsage(`true`))
}

// CheckBudgets compares the budgets of an organization.
func CheckBudgets(ctx context.Context, tx pgx.Tx, organization string) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.BudgetIsUsage, budgetsAndUsage(`b.organization = $1`), organization)
}
