package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// checksumOfRefusal is the first eight bytes of the SHA-256 of a refusal.
const checksumOfRefusal = `('x' || left(encode(sha256(convert_to(jsonb_build_array(organization,
	(extract(epoch FROM at) * 1000000)::bigint, request, project, key,
	environment, reason, bytes, remaining, quota, (extract(epoch FROM period_start) * 1000000)::bigint, exhausts, requests)::text,
	'UTF8')), 'hex'), 16))::bit(64)::bigint`

// sumUpRefusals adds the rows that a statement named saved has inserted to
// the sums of their days.
const sumUpRefusals = `INSERT INTO refusal_days AS d (organization, day, refusals, checksum)
	SELECT organization, date_trunc('day', at, 'UTC'), count(*), bit_xor(` + checksumOfRefusal + `) FROM saved GROUP BY 1, 2 ORDER BY 1, 2
	ON CONFLICT (organization, day) DO UPDATE SET refusals = d.refusals + excluded.refusals, checksum = d.checksum # excluded.checksum`

// refusalsAndSums compares the refusals of each day with their sums, where
// a condition holds, and what is refused by books and budgets with the
// refusals that said so. $1 is since when all are kept.
func refusalsAndSums(condition string) string {
	return `WITH kept AS (SELECT organization, date_trunc('day', at, 'UTC') AS day, count(*) AS refusals, bit_xor(` + checksumOfRefusal + `) AS checksum
			FROM refusals WHERE ` + condition + ` AND at >= $1 GROUP BY 1, 2),
		sums AS (SELECT organization, day, refusals, checksum FROM refusal_days WHERE ` + condition + ` AND day >= $1)
		SELECT concat_ws(', ', organization, 'refusals of ' || (day AT TIME ZONE 'UTC')::date), coalesce(k.checksum, 0), coalesce(s.checksum, 0)
			FROM kept k FULL JOIN sums s USING (organization, day) WHERE (k.refusals, k.checksum) IS DISTINCT FROM (s.refusals, s.checksum)
		UNION ALL SELECT concat_ws(', ', organization, 'allowance refused'), b.refused, coalesce(most, 0) FROM books b
			CROSS JOIN LATERAL (SELECT max(quota) AS most FROM refusals r WHERE r.organization = b.organization AND r.period_start = b.period_start
				AND exhausts AND reason = '') r
			WHERE ` + condition + ` AND b.period_start >= $1 AND b.refused > 0 AND b.refused > coalesce(most, 0)
		UNION ALL SELECT concat_ws(', ', organization, 'budget refused', nullif(project, ''), nullif(key, '')), b.refused, coalesce(most, 0) FROM budgets b
			CROSS JOIN LATERAL (SELECT max(quota) AS most FROM refusals r WHERE r.organization = b.organization AND r.period_start = b.period_start
				AND exhausts AND (b.key <> '' AND r.reason = '` + contract.ReasonKeyBudget + `' AND r.key = b.key
					OR b.project <> '' AND r.reason = '` + contract.ReasonProjectBudget + `' AND r.project = b.project)) r
			WHERE ` + condition + ` AND b.period_start >= $1 AND b.refused > 0 AND b.refused > coalesce(most, 0)`
}

// verifyRefusals compares all refusals.
func verifyRefusals(ctx context.Context, tx pgx.Tx, now time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RefusalsAreKept, refusalsAndSums(`true`), refusalsSince(now))
}

// CheckRefusals compares the refusals of an organization.
func CheckRefusals(ctx context.Context, tx pgx.Tx, organization string, now time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RefusalsAreKept, refusalsAndSums(`organization = $2`), refusalsSince(now), organization)
}

// refusalsSince returns the first day of which all refusals are kept.
func refusalsSince(now time.Time) time.Time {
	return now.Add(-refusalsKept).UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
}
