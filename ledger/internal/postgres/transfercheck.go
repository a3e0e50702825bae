package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// reasons are the accounts between which transfers are made, and why.
const reasons = `(0, 1, 1), (0, 1, 5), (0, 4, 1), (0, 4, 8), (3, 0, 3), (1, 2, 3), (4, 2, 3), (3, 7, 3), (1, 2, 2), (4, 2, 2), (0, 3, 2), (0, 7, 2),
	(1, 2, 4), (4, 2, 4), (0, 3, 4), (0, 7, 4), (1, 2, 8), (4, 2, 8), (0, 3, 8), (1, 5, 6), (4, 5, 6), (4, 6, 7)`

// oddTransfers finds transfers booked since $1 that no books make: in a
// period that is not theirs, of a reason that there is not, with a grant
// where no grant's account is, with entries that are no charge's, and
// those of one cause that do not belong together or are not all there. (Of
// a decision to do what was due the first may be gone with their day.)
// Those of decisions ($2: their source) name the decision.
const oddTransfers = `WITH kept AS (SELECT * FROM transfers WHERE booked_at >= $1)
	SELECT 'organization ' || t.organization || ', transfer of ' || event || ' outside its period', line::bigint, 0::bigint FROM kept t
		LEFT JOIN books b USING (organization, period_start) WHERE effective_at < b.period_start OR effective_at >= b.period_end OR b.period_end IS NULL
	UNION ALL SELECT 'organization ' || organization || ', transfer of ' || event || ' between accounts', from_account, to_account FROM kept
		WHERE (grant_id <> '') <> (4 IN (from_account, to_account)) OR entries < 0 OR entries > 0 AND reason NOT IN (2, 4)
			OR of_period IS NOT NULL AND reason NOT IN (4, 8)
	UNION ALL SELECT 'organization ' || organization || ', transfer of ' || event || ' for no reason', reason, source FROM kept
		WHERE (from_account, to_account, reason) NOT IN (` + reasons + `) OR source NOT BETWEEN 0 AND $2
	UNION ALL SELECT 'organization ' || organization || ', sum of transfers for no reason', reason, source FROM folded_transfers
		WHERE (from_account, to_account, reason) NOT IN (` + reasons + `) OR source NOT BETWEEN 0 AND $2
	UNION ALL SELECT 'organization ' || organization || ', lines of ' || min(event), max(line) + 1, count(*) FROM kept
		GROUP BY organization, source, partition, "offset" HAVING max(line) + 1 <> count(*) AND max(split_part(event, '/', 3)) = ''
	UNION ALL SELECT 'organization ' || organization || ', causes of ' || min(event),
		count(DISTINCT (project, key, booked_at, split_part(event, '/', 1))), 1 FROM kept
		GROUP BY organization, source, partition, "offset" HAVING count(DISTINCT (project, key, booked_at, split_part(event, '/', 1))) > 1
	UNION ALL SELECT 'organization ' || t.organization || ', transfer of ' || event || ' by decision', "offset", o.decisions FROM kept t
		JOIN organizations o USING (organization)
		LEFT JOIN events e ON e.organization = t.organization AND stream = '` + decisionStream + `' AND version = "offset"
		WHERE source = $2 AND (partition <> 0 OR "offset" > o.decisions OR event LIKE 'decision/%' AND split_part(event, '/', 2) <> "offset"::text
				OR event NOT LIKE 'decision/%' AND o.clock IS NULL OR event LIKE 'decision/%' AND (project, key) <> ('', '')
			OR e.version IS NOT NULL AND ` + notErased + ` AND o.clock IS NULL AND (booked_at > ` + decidedAt + `
				OR effective_at NOT IN (period_start, ` + decidedAt + `, (o.plans -> 0 ->> 'from')::timestamptz)
				AND (extract(epoch FROM effective_at) * 1000000)::bigint - coalesce(nullif(split_part(event, '/', 3), ''), '0')::bigint NOT IN (-1, 0)))`

// verifyTransfers checks what sums do not show. Transfers older than since
// are not looked at: those of the same cause may be gone.
func verifyTransfers(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.TransfersAreWhole, oddTransfers, since, ledger.FromDecisions)
}

// linesAndTransfers compares the lines of periods that begin at $1 or
// later, of which all transfers are kept, with the transfers, and those of
// adjustments with the decisions. A line's kind is the domain's.
const linesAndTransfers = `WITH made AS (
		SELECT organization, period_start, CASE WHEN from_account = 0 AND to_account = 1 AND reason = 5 THEN 2 WHEN from_account = 0 AND to_account = 1 THEN 1
				WHEN from_account = 0 AND to_account = 4 THEN 3 WHEN from_account = 4 AND to_account = 2 THEN 4
				WHEN from_account = 4 AND to_account = 5 THEN 5 WHEN from_account = 4 AND to_account = 6 THEN 6 END AS kind,
			grant_id AS subject, period_start AS of_period, amount AS bytes FROM transfers WHERE period_start >= $1
		UNION ALL SELECT organization, period_start, 7, '', of_period, amount FROM transfers WHERE period_start >= $1 AND source = 0 AND reason = 4
		UNION ALL SELECT t.organization, t.period_start, 8, e.data ->> 'id',
				coalesce((e.data ->> 'period_start')::timestamptz, t.period_start), (e.data ->> 'bytes')::bigint
			FROM events e JOIN LATERAL (
				SELECT organization, period_start FROM transfers t WHERE t.organization = e.organization
					AND organization_hash = hashtextextended(e.organization, 0) AND source = 3 AND "offset" = e.version LIMIT 1) t
				ON true
			WHERE stream = '` + decisionStream + `' AND name = '` + adjusted + `' AND t.period_start >= $1),
		sums AS (SELECT organization, period_start, kind, subject, of_period, sum(bytes)::bigint AS bytes FROM made WHERE kind IS NOT NULL GROUP BY 1, 2, 3, 4, 5)
	SELECT concat_ws(', ', organization, (period_start AT TIME ZONE 'UTC')::date, 'line ' || kind, nullif(subject, '')), coalesce(l.bytes, 0), coalesce(s.bytes, 0)
		FROM (SELECT * FROM period_lines WHERE period_start >= $1) l FULL JOIN sums s USING (organization, period_start, kind, subject, of_period)
		WHERE l.bytes IS DISTINCT FROM s.bytes`

// verifyLines compares the lines of periods of which all transfers are kept.
func verifyLines(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.LinesAreTransfers, linesAndTransfers, since)
}
