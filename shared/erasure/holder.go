package erasure

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Holding is how much a module has of an organization or a project.
type Holding struct {
	What        string // such as entries
	Amount      int64
	First, Last time.Time // of it; zero: unknown, or there is nothing
}

// Hold reads how much there is of an organization or a project, and since and until
// when, by a query of the three with its organization, its project and args.
func Hold(ctx context.Context, tx pgx.Tx, what string, of Deletion, query string, args ...any) (Holding, error) {
	h := Holding{What: what}
	var first, last *time.Time
	if err := tx.QueryRow(ctx, query, append([]any{of.Organization, of.Project}, args...)...).Scan(&h.Amount, &first, &last); err != nil {
		return h, fmt.Errorf("cannot count the %s of %v: %w", what, of, err)
	}
	if first != nil && last != nil {
		h.First, h.Last = *first, *last
	}
	return h, nil
}

// Holders returns whose rows some tables have, in the form in which they
// would be erased; not what is erased or is going to be. Each table has an
// index that begins with organization and project: a look into it finds
// the next, however many rows each has.
func Holders(ctx context.Context, tx pgx.Tx, tables ...string) (found []Deletion, err error) {
	for _, table := range tables {
		rows, err := tx.Query(ctx, fmt.Sprintf(`WITH RECURSIVE held (organization, project) AS (
				(SELECT organization, project FROM %[1]s ORDER BY organization, project LIMIT 1)
				UNION ALL
				SELECT following.* FROM held CROSS JOIN LATERAL (SELECT t.organization, t.project FROM %[1]s t
					WHERE (t.organization, t.project) > (held.organization, held.project) ORDER BY t.organization, t.project LIMIT 1) following)
			SELECT organization, project FROM held WHERE NOT EXISTS (SELECT FROM erasures e
				WHERE e.organization = held.organization AND e.project IN ('', held.project))`, pgx.Identifier{table}.Sanitize()))
		if err != nil {
			return nil, fmt.Errorf("cannot find whose rows %s has: %w", table, err)
		}
		of, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Deletion])
		if err != nil {
			return nil, fmt.Errorf("cannot find whose rows %s has: %w", table, err)
		}
		found = append(found, of...)
	}
	return found, nil
}
