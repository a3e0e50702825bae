package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// verifyGrants compares what became of the grants since an instant with their
// transfers, and what is left of an organization's with what it may use. One
// that was voided before it started was never booked.
func verifyGrants(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	rows, err := tx.Query(ctx, `WITH booked AS (SELECT organization, grant_id AS id,
				sum(amount) FILTER (WHERE to_account = $3) AS issued, sum(amount) FILTER (WHERE from_account = $3 AND to_account = $4) AS consumed,
				sum(amount) FILTER (WHERE to_account = $5) AS expired, sum(amount) FILTER (WHERE to_account = $6) AS voided
			FROM transfers WHERE grant_id <> '' GROUP BY 1, 2),
		left_of_all AS (SELECT organization, sum(remaining) AS remaining FROM grants WHERE status = $2 GROUP BY 1)
		SELECT concat_ws(', ', g.organization, 'grant ' || g.id, v.what), v.kept::bigint, coalesce(v.booked, 0)::bigint
		FROM grants g LEFT JOIN booked b USING (organization, id) CROSS JOIN LATERAL (VALUES ('issued', g.amount, b.issued),
			('consumed', g.consumed, b.consumed), ('expired', g.expired, b.expired), ('voided', g.voided, b.voided)) AS v (what, kept, booked)
		WHERE g.created_at >= $1 AND g.status <> $7 AND NOT (b.id IS NULL AND g.voided = g.amount) AND v.kept <> coalesce(v.booked, 0)
		UNION ALL SELECT concat_ws(', ', organization, 'all grants'), coalesce(l.remaining, 0)::bigint, o.pool
		FROM organizations o LEFT JOIN left_of_all l USING (organization) WHERE coalesce(l.remaining, 0) <> o.pool`,
		since, ledger.GrantActive, ledger.Credit, ledger.Consumed, ledger.Expired, ledger.Voided, ledger.GrantScheduled)
	if err != nil {
		return nil, fmt.Errorf("cannot compare grants with transfers: %w", err)
	}
	return violationsOf(rows, ledger.GrantIsTransfers)
}
