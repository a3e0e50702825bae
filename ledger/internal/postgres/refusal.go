package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// UnsavedRefusals returns the indexes of refusals that are not saved yet.
func UnsavedRefusals(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) ([]int, error) {
	n := len(refusals)
	organizations, at, requests := make([]string, n), make([]time.Time, n), make([]string, n)
	for i, r := range refusals {
		organizations[i], at[i], requests[i] = r.Organization, r.Cause.At, r.Cause.Event
	}
	rows, err := tx.Query(ctx, `SELECT n - 1 FROM unnest($1::text[], $2::timestamptz[], $3::text[]) WITH ORDINALITY AS u (organization, at, request, n)
		WHERE NOT EXISTS (SELECT FROM refusals r WHERE (r.organization, r.at, r.request) = (u.organization, u.at, u.request)) ORDER BY n`,
		organizations, at, requests)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// SaveRefusals stores refusals. One that was published twice stays as it is.
func SaveRefusals(ctx context.Context, tx pgx.Tx, saved time.Time, refusals []ledger.Refusal) error {
	n := len(refusals)
	organizations, requests, projects := make([]string, n), make([]string, n), make([]string, n)
	keys, environments, reasons := make([]string, n), make([]string, n), make([]string, n)
	at, starts, exhausts := make([]time.Time, n), make([]time.Time, n), make([]bool, n)
	bytes, remaining, quotas, counts := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	since, refused := make([]int64, n), make([]int64, n)
	for i, r := range refusals {
		organizations[i], requests[i], projects[i], keys[i] = r.Organization, r.Cause.Event, r.Cause.Project, r.Cause.Key
		environments[i], reasons[i], at[i], starts[i], exhausts[i] = r.Environment, r.Reason, r.Cause.At, r.PeriodStart, r.Exhausts
		bytes[i], remaining[i], quotas[i], counts[i] = r.Bytes, r.Remaining, r.Quota, r.Requests
		since[i], refused[i] = r.Since, r.Refused
	}
	_, err := tx.Exec(ctx, `WITH saved AS (INSERT INTO refusals
			(organization, at, request, project, key, environment, reason, bytes, remaining, quota, period_start, exhausts, requests, since, refused)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
			$8::bigint[], $9::bigint[], $10::bigint[], $11::timestamptz[], $12::boolean[], $13::bigint[], $14::bigint[], $15::bigint[])
		ON CONFLICT DO NOTHING RETURNING *) `+sumUpRefusals,
		organizations, at, requests, projects, keys, environments, reasons, bytes, remaining, quotas, starts, exhausts, counts, since, refused, saved)
	return err
}

// A RefusalCursor is a place in an organization's list of refusals. The
// zero value is the start.
type RefusalCursor struct {
	At      time.Time `json:"t"`
	Request string    `json:"r"`
}

// RefusalPlace returns a refusal's place in the list.
func RefusalPlace(r ledger.Refusal) RefusalCursor { return RefusalCursor{r.Cause.At, r.Cause.Event} }

// A RefusalQuery selects at most Limit refusals in [From, To) after After.
type RefusalQuery struct {
	From, To time.Time
	After    RefusalCursor
	Limit    int
}

const refusalColumns = `at, request, project, key, environment, reason, bytes, remaining, quota, period_start, exhausts, requests`

func refusalFields(r *ledger.Refusal) []any {
	return []any{
		&r.Cause.At, &r.Cause.Event, &r.Cause.Project, &r.Cause.Key, &r.Environment, &r.Reason, &r.Bytes, &r.Remaining, &r.Quota, &r.PeriodStart,
		&r.Exhausts, &r.Requests,
	}
}

// Refusals lists refusals, the latest first.
func Refusals(ctx context.Context, tx pgx.Tx, organization pg.Organization, q RefusalQuery) ([]ledger.Refusal, error) {
	rows, err := tx.Query(ctx, `SELECT `+refusalColumns+` FROM refusals WHERE organization = $1 AND at >= $2 AND at < $3
			AND (NOT $4::boolean OR (at, request) < ($5, $6)) ORDER BY at DESC, request DESC LIMIT $7`,
		organization, q.From, q.To, q.After != RefusalCursor{}, q.After.At, q.After.Request, q.Limit)
	if err != nil {
		return nil, err
	}
	var refusals []ledger.Refusal
	r := ledger.Refusal{Organization: string(organization)}
	_, err = pgx.ForEachRow(rows, refusalFields(&r), func() error {
		r.Cause.At, r.PeriodStart = r.Cause.At.UTC(), r.PeriodStart.UTC()
		refusals = append(refusals, r)
		return nil
	})
	return refusals, err
}

// FirstRefusal returns the refused request that exhausted an allowance
// of a period; found is false where there is none.
func FirstRefusal(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, quota int64) (r ledger.Refusal, found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT `+refusalColumns+` FROM refusals
		WHERE organization = $1 AND at >= $2 AND at < $3 AND quota = $4 AND exhausts AND reason = '' ORDER BY at, request LIMIT 1`,
		organization, period.Start, period.End, quota).Scan(refusalFields(&r)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	r.Cause.At = r.Cause.At.UTC()
	return r, err == nil, err
}

// LastUse returns the transfer that took the last bytes of a period by
// an instant: a charge, expiry, void or adjustment. found is false
// where there is none, or it is gone.
func LastUse(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, by time.Time) (t ledger.Transfer, found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT effective_at, event, project, key, amount, reason, grant_id FROM transfers
		WHERE `+ofOrganization+` AND effective_at >= $2 AND effective_at <= $3 AND (from_account IN ($4, $5) OR to_account = $6) AND reason <> $7
		ORDER BY effective_at DESC, booked_at DESC, line DESC LIMIT 1`,
		customPlan, organization, period.Start, by, ledger.Allowance, ledger.Credit, ledger.Overage, ledger.Settled).
		Scan(&t.Cause.At, &t.Cause.Event, &t.Cause.Project, &t.Cause.Key, &t.Amount, &t.Reason, &t.Grant)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, false, nil
	}
	t.Cause.At = t.Cause.At.UTC()
	return t, err == nil, err
}

// A Share is how much of an allowance one project, key, environment or
// hour has used.
type Share struct {
	By    string // a Dimension, ByHour or ByAdjustment
	ID    string
	Bytes int64
}

// sharesOfEach is how many shares of each kind are listed, the largest first.
const sharesOfEach = 5

// usedBy adds up days, then hours, then the charges of the last hour.
// Charges have no environment, so that hour counts whole for these.
const usedBy = `WITH used (project, key, environment, hour, bytes) AS (
		SELECT project, key, environment, NULL::timestamptz, bytes FROM usage_days WHERE organization = $1 AND outcome = $7
			AND day >= ($2::timestamptz AT TIME ZONE 'UTC')::date AND day < ($3::timestamptz AT TIME ZONE 'UTC')::date
		UNION ALL SELECT NULL, NULL, NULL, hour, bytes FROM usage_hours WHERE organization = $1 AND outcome = $7 AND hour >= $2 AND hour < $3
		UNION ALL SELECT project, key, environment, hour, bytes FROM usage_hours WHERE organization = $1 AND outcome = $7 AND hour >= $3 AND hour < $4
		UNION ALL SELECT NULL, NULL, environment, NULL, bytes FROM usage_hours WHERE organization = $1 AND outcome = $7 AND hour = $4
		UNION ALL SELECT project, key, NULL, $4, amount FROM transfers WHERE ` + ofOrganization + ` AND effective_at >= $4 AND effective_at <= $5 AND reason = $8)`

// Shares lists the largest shares from the start of a day through an
// instant: of projects, keys and hours, and of environments through the
// end of the hour.
func Shares(ctx context.Context, tx pgx.Tx, organization pg.Organization, from, through time.Time) ([]Share, error) {
	day, hour := through.UTC().Truncate(24*time.Hour), through.Truncate(time.Hour)
	rows, err := tx.Query(ctx, usedBy+` SELECT kind, id, bytes FROM (
			SELECT kind, id, sum(bytes)::bigint AS bytes, row_number() OVER (PARTITION BY kind ORDER BY sum(bytes) DESC, id) AS place
			FROM used CROSS JOIN LATERAL (VALUES ('project', project), ('key', key), ('environment', environment),
				('hour', to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))) AS part (kind, id)
			WHERE id IS NOT NULL GROUP BY kind, id HAVING sum(bytes) > 0) ranked
		WHERE place <= $6 ORDER BY array_position(ARRAY['project', 'key', 'environment', 'hour'], kind), place`,
		customPlan, organization, from, day, hour, through, sharesOfEach, ledger.UseAccepted, ledger.Charged)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Share])
}

// ByAdjustment is a share that an adjustment has charged.
const ByAdjustment = "adjustment"

// AdjustmentShares lists the largest adjustments by which a period was
// charged, as far as they were decided by an instant.
func AdjustmentShares(ctx context.Context, tx pgx.Tx, organization pg.Organization, start, through time.Time) ([]Share, error) {
	rows, _ := tx.Query(ctx, `SELECT $6::text, subject, -bytes FROM period_lines l
		WHERE organization = $1 AND period_start = $2 AND kind = $3 AND bytes < 0 AND NOT EXISTS (SELECT FROM events e
			WHERE e.organization = l.organization AND e.stream = $4 AND e.name = $5 AND e.data ->> 'id' = l.subject AND `+decidedAt+` > $7)
		ORDER BY bytes, subject LIMIT $8`, organization, start, ledger.AdjustmentMade, decisionStream, adjusted, ByAdjustment, through, sharesOfEach)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Share])
}

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

// CheckRefusals compares the refusals of an organization or of Everyone.
func CheckRefusals(ctx context.Context, tx pgx.Tx, organization string, now time.Time) ([]ledger.Violation, error) {
	condition, args := scope(organization, "organization", refusalsSince(now))
	return differences(ctx, tx, ledger.RefusalsAreKept, refusalsAndSums(condition), args...)
}

// refusalsSince returns the first day of which all refusals are kept.
func refusalsSince(now time.Time) time.Time {
	return now.Add(-refusalsKept).UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
}
