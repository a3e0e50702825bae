package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of an overview.
const (
	MostCounted = 10_000 // groups that are counted; one more says that there are others
	MostSummed  = 10_000 // groups whose errors are summed up, those seen last
)

// An Overview is how a project's errors are.
type Overview struct {
	Unresolved int64 // groups, at most MostCounted + 1
	New        int64 // of these, since a day
	From       time.Time
	Hours      grouping.HourCounts // errors, whatever became of their groups
	AtLeast    bool                // there are more groups than MostSummed
}

// FindOverview returns how the errors of a project are. tx must act as the organization.
func FindOverview(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string, now time.Time) (o Overview, err error) {
	last := grouping.HourOf(now)
	first := last - grouping.HoursOfDay + 1
	o.From = grouping.HourAt(first)
	since := now.Add(-24 * time.Hour)
	const unresolved = `SELECT count(*) FROM (SELECT FROM error_groups WHERE organization = $1 AND project = $2 AND merged_into = '' AND status = 'unresolved'`
	if err := tx.QueryRow(ctx, unresolved+` LIMIT $3) found`, organization, project, MostCounted+1).Scan(&o.Unresolved); err != nil {
		return o, err
	}
	if err := tx.QueryRow(ctx, unresolved+` AND first_seen >= $3 AND seen_minute >= $4 LIMIT $5) found`,
		organization, project, since, minute(since), MostCounted+1).Scan(&o.New); err != nil {
		return o, err
	}
	rows, err := tx.Query(ctx, `SELECT id FROM error_groups WHERE organization = $1 AND project = $2 AND merged_into = '' AND seen_minute >= $3
		ORDER BY seen_minute DESC LIMIT $4`, organization, project, minute(o.From), MostSummed+1)
	if err != nil {
		return o, err
	}
	seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return o, err
	}
	if o.AtLeast = len(seen) > MostSummed; o.AtLeast {
		seen = seen[:MostSummed]
	}
	rows, err = tx.Query(ctx, `SELECT day, key::bigint, sum(value::bigint)::bigint FROM `+daysOf+`, json_each_text(counted->'hours')
		WHERE day >= $3::date GROUP BY day, key`,
		organization, seen, o.From.UTC())
	if err != nil {
		return o, err
	}
	var day time.Time
	var hour, errors int64
	_, err = pgx.ForEachRow(rows, []any{&day, &hour, &errors}, func() error {
		if at := grouping.HourOf(day) + hour - first; at >= 0 && at < grouping.HoursOfDay {
			o.Hours[at] += errors
		}
		return nil
	})
	return o, err
}
