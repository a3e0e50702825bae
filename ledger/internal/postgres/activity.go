package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// OrganizationIDs lists at most limit organizations with a plan whose
// ids contain a text, sorted, from after on. tx must see all organizations.
func OrganizationIDs(ctx context.Context, tx pgx.Tx, containing, after string, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT organization FROM organizations
		WHERE organization > $1 AND plans <> '[]' AND strpos(organization, $2) > 0 ORDER BY organization LIMIT $3`, after, containing, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// LastActivity returns the last hour with usage of each organization,
// or the last day where hours are gone.
func LastActivity(ctx context.Context, tx pgx.Tx, organizations []string) (map[string]time.Time, error) {
	rows, err := tx.Query(ctx, `SELECT id, coalesce(h.hour, d.day::timestamp AT TIME ZONE 'UTC') FROM unnest($1::text[]) AS id
		LEFT JOIN LATERAL (SELECT hour FROM usage_hours WHERE organization = id ORDER BY hour DESC LIMIT 1) h ON true
		LEFT JOIN LATERAL (SELECT day FROM usage_days WHERE organization = id ORDER BY day DESC LIMIT 1) d ON true
		WHERE h.hour IS NOT NULL OR d.day IS NOT NULL`, organizations)
	if err != nil {
		return nil, err
	}
	last := map[string]time.Time{}
	var id string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		last[id] = at.UTC()
		return nil
	})
	return last, err
}
