package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

const budgetColumns = `organization, project, key, bytes, used, period_start, reached, refused, since`

// LoadBudgets reads the budgets of organizations: projects before keys,
// each by id.
func LoadBudgets(ctx context.Context, tx pgx.Tx, organizations []string) (map[string][]ledger.Budget, error) {
	if len(organizations) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT `+budgetColumns+` FROM budgets WHERE organization = ANY($1)
		ORDER BY organization, key COLLATE "C", project COLLATE "C"`, organizations)
	if err != nil {
		return nil, err
	}
	budgets := map[string][]ledger.Budget{}
	var organization string
	var b ledger.Budget
	_, err = pgx.ForEachRow(rows, []any{
		&organization, &b.Project, &b.Key, &b.Bytes, &b.Used, &b.Period, &b.Reached, &b.Refused, &b.Since,
	}, func() error {
		b.Period = b.Period.UTC()
		budgets[organization] = append(budgets[organization], b)
		return nil
	})
	return budgets, err
}

// queueBudgets writes the budgets of opened books.
func queueBudgets(batch *pgx.Batch, opened map[string]*ledger.Books) {
	for _, id := range sortedKeys(opened) {
		for _, of := range opened[id].RemovedBudgets { // first: it may have a new one
			batch.Queue(`DELETE FROM budgets WHERE organization = $1 AND project = $2 AND key = $3`, id, of.Project, of.Key)
		}
	}
	queueKeptBudgets(batch, opened)
}

func queueKeptBudgets(batch *pgx.Batch, opened map[string]*ledger.Books) {
	var ids, projects, keys []string
	var bytes, used, refused, since []int64
	var starts []time.Time
	var reached []int16
	for _, id := range sortedKeys(opened) {
		for _, b := range opened[id].Budgets {
			ids, projects, keys = append(ids, id), append(projects, b.Project), append(keys, b.Key)
			bytes, used, refused, since = append(bytes, b.Bytes), append(used, b.Used), append(refused, b.Refused), append(since, b.Since)
			starts, reached = append(starts, b.Period), append(reached, int16(b.Reached))
		}
	}
	if len(ids) == 0 {
		return
	}
	batch.Queue(`INSERT INTO budgets AS b (`+budgetColumns+`)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::smallint[], $8::bigint[], $9::bigint[])
		ON CONFLICT (organization, project, key) DO UPDATE SET bytes = excluded.bytes, used = excluded.used, period_start = excluded.period_start,
			reached = excluded.reached, refused = excluded.refused, since = excluded.since
		WHERE (b.bytes, b.used, b.period_start, b.reached, b.refused, b.since)
			IS DISTINCT FROM (excluded.bytes, excluded.used, excluded.period_start, excluded.reached, excluded.refused, excluded.since)`,
		ids, projects, keys, bytes, used, starts, reached, refused, since)
}

// Spent returns the accepted bytes of each spender between two days, in
// their order.
func Spent(ctx context.Context, tx pgx.Tx, organization pg.Organization, spenders []ledger.Spender, from, to time.Time) ([]int64, error) {
	projects, keys := make([]string, len(spenders)), make([]string, len(spenders))
	for i, s := range spenders {
		projects[i], keys[i] = s.Project, s.Key
	}
	rows, err := tx.Query(ctx, `SELECT coalesce(sum(u.bytes), 0)::bigint
		FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS s (project, key, n)
		LEFT JOIN usage_days u ON u.organization = $1 AND u.outcome = $4 AND u.day >= ($5::timestamptz AT TIME ZONE 'UTC')::date
			AND u.day < ($6::timestamptz AT TIME ZONE 'UTC')::date AND CASE WHEN s.key <> '' THEN u.key = s.key ELSE u.project = s.project END
		GROUP BY n ORDER BY n`, organization, projects, keys, ledger.UseAccepted, from, to)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
