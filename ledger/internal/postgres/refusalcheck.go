package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// checksumOfRefusal is the SHA-256 of a refusal.
const checksumOfRefusal = `('x' || encode(sha256(convert_to(jsonb_build_array(organization,
	(extract(epoch FROM at) * 1000000)::bigint, request, project, key,
	environment, reason, bytes, remaining, quota, (extract(epoch FROM period_start) * 1000000)::bigint, exhausts, requests, since, refused)::text,
	'UTF8')), 'hex'))::bit(256)`

// sumUpRefusals adds the rows that a statement named saved has inserted to
// the sums of their days that no root has yet. $16 is the time.
const sumUpRefusals = `INSERT INTO refusal_days AS d (organization, day, refusals, checksum, saved_at)
	SELECT organization, date_trunc('day', at, 'UTC'), count(*), bit_xor(` + checksumOfRefusal + `), $16 FROM saved GROUP BY 1, 2 ORDER BY 1, 2
	ON CONFLICT (organization, day, hour) DO UPDATE SET refusals = d.refusals + excluded.refusals, checksum = d.checksum # excluded.checksum`

// hashOfRefusals is the SHA-256 of the sums in an hour of refusal_days;
// NULL: there is none.
const hashOfRefusals = `sha256(convert_to(jsonb_agg(jsonb_build_array(organization, extract(epoch FROM day)::bigint, refusals, checksum)
	ORDER BY organization COLLATE "C", day)::text, 'UTF8'))`

// latches are what refusals have exhausted: an allowance, with neither
// project nor key, or a budget.
const latches = `SELECT organization, CASE reason WHEN '` + contract.ReasonProjectBudget + `' THEN project ELSE '' END AS project,
		CASE reason WHEN '` + contract.ReasonKeyBudget + `' THEN key ELSE '' END AS key, period_start, since, max(refused) AS refused
	FROM refusals WHERE refused > 0 GROUP BY 1, 2, 3, 4, 5`

// refusalsAndSums compares the refusals of each day with their sums, where
// a condition holds, and what is refused by books and budgets with the
// refusals that said so. $1 is since when all are kept.
func refusalsAndSums(condition string) string {
	return `WITH kept AS (SELECT organization, date_trunc('day', at, 'UTC') AS day, count(*) AS refusals, bit_xor(` + checksumOfRefusal + `) AS checksum
			FROM refusals WHERE ` + condition + ` AND at >= $1 GROUP BY 1, 2),
		sums AS (SELECT organization, day, sum(refusals) AS refusals, bit_xor(checksum) AS checksum FROM refusal_days
			WHERE ` + condition + ` AND day >= $1 GROUP BY 1, 2),
		latches AS (` + latches + `),
		limits AS (SELECT organization, '' AS project, '' AS key, period_start, raises AS since, refused, NULL AS bytes FROM books
			UNION ALL SELECT organization, project, key, period_start, since, refused, bytes FROM budgets)
		SELECT concat_ws(', ', organization, 'refusals of ' || (day AT TIME ZONE 'UTC')::date), coalesce(k.refusals, 0), coalesce(s.refusals, 0)::bigint
			FROM kept k FULL JOIN sums s USING (organization, day) WHERE (k.refusals, k.checksum) IS DISTINCT FROM (s.refusals, s.checksum)
		UNION ALL SELECT concat_ws(', ', organization, 'refused', nullif(project, ''), nullif(key, '')), l.refused, coalesce(r.refused, 0)
			FROM limits l LEFT JOIN latches r USING (organization, project, key, period_start, since)
			WHERE ` + condition + ` AND period_start >= $1 AND l.refused <> least(coalesce(r.refused, 0), bytes)`
}

// refusalsAndSeals compares the sums that each root has with those kept
// since $1.
const refusalsAndSeals = `WITH sums AS (SELECT hour, count(*) AS sums, ` + hashOfRefusals + ` AS hash FROM refusal_days WHERE hour < 'infinity' GROUP BY 1)
	SELECT concat('sums of refusals in the root of ', hour AT TIME ZONE 'UTC'), coalesce(sums, 0), (seals.hour IS NOT NULL)::int
		FROM sums FULL JOIN seals USING (hour) WHERE hour >= $1 AND hash IS DISTINCT FROM refused`

// verifyRefusals compares all refusals, and their sums with the roots.
func verifyRefusals(ctx context.Context, tx pgx.Tx, now time.Time) ([]ledger.Violation, error) {
	violations, err := differences(ctx, tx, ledger.RefusalsAreKept, refusalsAndSums(`true`), refusalsSince(now))
	if err != nil {
		return nil, err
	}
	sealed, err := differences(ctx, tx, ledger.RefusalsAreKept, refusalsAndSeals, refusalsSince(now))
	return append(violations, sealed...), err
}

// CheckRefusals compares the refusals of an organization.
func CheckRefusals(ctx context.Context, tx pgx.Tx, organization string, now time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RefusalsAreKept, refusalsAndSums(`organization = $2`), refusalsSince(now), organization)
}

// refusalsSince returns the first day of which all refusals are kept.
func refusalsSince(now time.Time) time.Time {
	return now.Add(-refusalsKept).UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
}
