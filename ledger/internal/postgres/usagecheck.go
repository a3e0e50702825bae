package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// withoutKeys selects usage from before keys and requests were counted.
const withoutKeys = `outcome = 'accepted' AND key = '' AND requests = 0 AND entries > 0`

// usageAndCharges compares usage with the charges since the start of a
// period ($1), by organization, project and key, where a condition
// holds, another for transfers. A project with usage without keys is compared whole. Late
// charges are usage of their own period.
func usageAndCharges(condition, charges string) string {
	return `WITH old AS (SELECT DISTINCT organization, project FROM usage_days
			WHERE ` + condition + ` AND day >= ($1::timestamptz AT TIME ZONE 'UTC')::date AND ` + withoutKeys + `),
		charged AS (SELECT organization, project, key, sum(amount)::bigint AS bytes FROM transfers
			WHERE ` + charges + ` AND reason IN (2, 4) AND effective_at >= $1 AND coalesce(of_period, effective_at) >= $1 GROUP BY 1, 2, 3),
		used AS (SELECT organization, project, key, sum(bytes)::bigint AS bytes FROM usage_days
			WHERE ` + condition + ` AND outcome = 'accepted' AND day >= ($1::timestamptz AT TIME ZONE 'UTC')::date GROUP BY 1, 2, 3),
		both_sides AS (SELECT organization, project, key, bytes AS used, 0 AS charged FROM used
			UNION ALL SELECT organization, project, key, 0, bytes FROM charged)
		SELECT concat_ws(', ', organization, project, nullif(key, '')), sum(used)::bigint, sum(charged)::bigint
		FROM (SELECT organization, project, used, charged, CASE WHEN EXISTS (SELECT FROM old WHERE old.organization = b.organization AND old.project = b.project)
			THEN '' ELSE key END AS key FROM both_sides b) compared
		GROUP BY organization, project, key HAVING sum(used) <> sum(charged)`
}

// verifyUsage compares all usage with all charges.
func verifyUsage(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.UsageIsCharges, usageAndCharges(`true`, `true`), time.Time{})
}

// CheckCharges compares an organization's usage with its charges since
// the start of a period.
func CheckCharges(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	query := usageAndCharges(`organization = $2`, `organization = $2 AND organization_hash = hashtextextended($2, 0)`)
	return differences(ctx, tx, ledger.UsageIsCharges, query, customPlan, since, organization)
}

// hoursAndDays compares hours with days of usage that meet a condition
// of organization and day. A second condition selects the hours, as no
// index has their day. Days with usage from before there were hours are left out.
func hoursAndDays(condition, hours string) string {
	const alike = `organization, day, project, key, environment, outcome, reason`
	return `SELECT concat_ws(', ', ` + alike + `, what), sum(hours)::bigint, sum(days)::bigint
		FROM (SELECT ` + alike + `, what, n AS days, 0 AS hours FROM usage_days ` + eachNumber + `
			UNION ALL SELECT organization, (hour AT TIME ZONE 'UTC')::date, project, key, environment, outcome, reason, what, 0, n
				FROM usage_hours ` + eachNumber + ` WHERE ` + hours + `) both_sides
		WHERE ` + condition + ` AND NOT EXISTS (SELECT FROM usage_days old
			WHERE old.organization = both_sides.organization AND old.day = both_sides.day AND ` + withoutKeys + `)
		GROUP BY ` + alike + `, what HAVING sum(hours) <> sum(days)`
}

// eachNumber makes a row for each number of usage.
const eachNumber = `CROSS JOIN LATERAL (VALUES ('bytes', bytes), ('entries', entries), ('requests', requests), ('errors', errors),
	('keys in bodies', key_in_body))
	AS number (what, n)`

// verifyHours compares the days since an instant.
func verifyHours(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	rows, err := tx.Query(ctx, hoursAndDays(`day >= $1::date`, `hour >= date_trunc('day', $1::timestamptz, 'UTC')`), since)
	if err != nil {
		return nil, fmt.Errorf("cannot compare hours with days: %w", err)
	}
	return violationsOf(rows, ledger.HoursAreDays)
}

// CheckHours compares an organization's hours with its days since an instant.
func CheckHours(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	rows, err := tx.Query(ctx, hoursAndDays(`organization = $1 AND day >= $2::date`, `hour >= date_trunc('day', $2::timestamptz, 'UTC')`), organization, since)
	if err != nil {
		return nil, fmt.Errorf("cannot compare hours with days: %w", err)
	}
	return violationsOf(rows, ledger.HoursAreDays)
}

// CheckUsage compares hours with days of the books' organizations, on
// the last day that a range touched.
func CheckUsage(ctx context.Context, tx pgx.Tx, r ledger.Range, keys map[BookKey]bool) ([]ledger.Violation, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	organizations := make([]string, 0, len(keys))
	for key := range keys {
		organizations = append(organizations, key.Organization)
	}
	rows, err := tx.Query(ctx, hoursAndDays(`organization = ANY($1) AND day = $2::date`, `hour >= $2 AND hour < $2 + interval '1 day'`),
		organizations, r.To.UTC().Truncate(24*time.Hour))
	if err != nil {
		return nil, fmt.Errorf("cannot compare hours with days: %w", err)
	}
	return violationsOf(rows, ledger.HoursAreDays)
}
