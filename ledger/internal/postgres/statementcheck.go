package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// statementsAndBooks compares statements with their books, and each
// with its own sums, where a condition holds. $1 is since when books are
// kept.
func statementsAndBooks(condition string) string {
	return `WITH totals AS (SELECT s.organization, s.number, s.period_start, t.*
			FROM statements s, jsonb_to_record(s.document -> 'totals') AS t (opening bigint, allowance bigint, prorated bigint, granted bigint,
				consumed bigint, overage bigint, overshoot bigint, expired bigint, voided bigint, closing bigint) WHERE ` + condition + `)
		SELECT 'what organization ' || organization || ' had by statement ' || number, opening + allowance + prorated + granted, consumed + expired + voided + closing
			FROM totals WHERE opening + allowance + prorated + granted <> consumed + expired + voided + closing
		UNION ALL SELECT 'what organization ' || t.organization || ' used by statement ' || t.number, t.consumed + t.overage + t.overshoot,
				b.consumed + b.overage + b.overshoot
			FROM totals t JOIN books b USING (organization, period_start) WHERE (t.consumed, t.overage, t.overshoot) <> (b.consumed, b.overage, b.overshoot)
		UNION ALL SELECT 'what organization ' || t.organization || ' did not use by statement ' || t.number, t.expired + t.voided, b.expired + b.voided
			FROM totals t JOIN books b USING (organization, period_start) WHERE (t.expired, t.voided) <> (b.expired, b.voided)
		UNION ALL SELECT 'what grants of organization ' || t.organization || ' grew by in statement ' || t.number, t.closing - t.opening, b.credit
			FROM totals t JOIN books b USING (organization, period_start) WHERE t.closing - t.opening <> b.credit
		UNION ALL SELECT 'books of organization ' || s.organization || ' for statement ' || s.number, 1, 0
			FROM statements s WHERE ` + condition + ` AND s.period_end >= $1
				AND NOT EXISTS (SELECT FROM books b WHERE b.organization = s.organization AND b.period_start = s.period_start)`
}

// verifyStatements compares all statements.
func verifyStatements(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.StatementIsBook, statementsAndBooks(`true`), since)
}

// CheckStatements compares the statements of an organization.
func CheckStatements(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.StatementIsBook, statementsAndBooks(`s.organization = $2`), since, organization)
}
