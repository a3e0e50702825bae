package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// grantsAndTransfers compares grants since an instant with their
// transfers, and organizations' pools with what is left of their
// grants, where a condition holds, another for transfers. A grant voided before its start was
// never booked. One may cover earlier charges ($8) of the period that
// was open at its creation.
func grantsAndTransfers(condition, transfers string) string {
	return `WITH booked AS (SELECT organization, grant_id AS id,
				sum(amount) FILTER (WHERE to_account = $3) AS issued, sum(amount) FILTER (WHERE from_account = $3 AND to_account = $4) AS consumed,
				sum(amount) FILTER (WHERE to_account = $5) AS expired, sum(amount) FILTER (WHERE to_account = $6) AS voided
			FROM transfers WHERE ` + transfers + ` AND grant_id <> '' AND effective_at >= $8 GROUP BY 1, 2),
		left_of_all AS (SELECT organization, sum(remaining) AS remaining FROM grants WHERE ` + condition + ` AND status = $2 GROUP BY 1)
		SELECT concat_ws(', ', g.organization, 'grant ' || g.id, v.what), v.kept::bigint, coalesce(v.booked, 0)::bigint
		FROM grants g LEFT JOIN booked b USING (organization, id) CROSS JOIN LATERAL (VALUES ('issued', g.amount, b.issued),
			('consumed', g.consumed, b.consumed), ('expired', g.expired, b.expired), ('voided', g.voided, b.voided)) AS v (what, kept, booked)
		WHERE ` + condition + ` AND g.created_at >= $1 AND g.status <> $7 AND NOT (b.id IS NULL AND g.voided = g.amount) AND v.kept <> coalesce(v.booked, 0)
		UNION ALL SELECT concat_ws(', ', organization, 'all grants'), coalesce(l.remaining, 0)::bigint, o.pool
		FROM organizations o LEFT JOIN left_of_all l USING (organization) WHERE ` + condition + ` AND coalesce(l.remaining, 0) <> o.pool`
}

// verifyGrants compares all grants created since an instant.
func verifyGrants(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return compareGrants(ctx, tx, `true`, `true`, since)
}

// CheckGrants compares an organization's grants created since an
// instant, and its pool.
func CheckGrants(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	return compareGrants(ctx, tx, `organization = $9`, `organization = $9 AND organization_hash = hashtextextended($9, 0)`, since, organization)
}

// maxOpenPeriod exceeds how long a period is open.
const maxOpenPeriod = 62 * 24 * time.Hour

func compareGrants(ctx context.Context, tx pgx.Tx, condition, transfers string, since time.Time, of ...any) ([]ledger.Violation, error) {
	args := []any{customPlan, since, ledger.GrantActive, ledger.Credit, ledger.Consumed, ledger.Expired, ledger.Voided,
		ledger.GrantScheduled, since.Add(-maxOpenPeriod)}
	return differences(ctx, tx, ledger.GrantIsTransfers, grantsAndTransfers(condition, transfers), append(args, of...)...)
}
