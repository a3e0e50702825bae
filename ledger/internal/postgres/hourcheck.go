package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// hoursAndCharges compares what was accepted in each hour since $1 with
// what was charged. Where charges came late of a closed period, only what
// follows that period is compared: they do not keep their hour.
const hoursAndCharges = `WITH late AS (SELECT t.organization, max(b.period_end) AS through FROM transfers t
			JOIN books b ON b.organization = t.organization AND b.period_start = t.of_period WHERE reason = 4 GROUP BY 1),
		charged AS (SELECT organization, date_trunc('hour', effective_at, 'UTC') AS hour, project, key, sum(amount)::bigint AS bytes
			FROM transfers WHERE reason = 2 AND effective_at >= $1 GROUP BY 1, 2, 3, 4),
		used AS (SELECT organization, hour, project, key, sum(bytes)::bigint AS bytes FROM usage_hours WHERE outcome = 'accepted' AND hour >= $1 GROUP BY 1, 2, 3, 4)
	SELECT concat_ws(', ', organization, hour AT TIME ZONE 'UTC', project, key), coalesce(u.bytes, 0), coalesce(c.bytes, 0)
		FROM charged c FULL JOIN used u USING (organization, hour, project, key) LEFT JOIN late USING (organization)
		WHERE c.bytes IS DISTINCT FROM u.bytes AND (through IS NULL OR hour >= through)`

// verifyChargedHours compares the hours since an instant.
func verifyChargedHours(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.UsageIsCharges, hoursAndCharges, since)
}
