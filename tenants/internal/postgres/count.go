package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// Count is how many of something an organization has at now.
func Count(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, now time.Time) (int, error) {
	counted, args := countOf(what, now)
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM `+counted, args...)
}

func countOf(what tenants.Countable, now time.Time) (query string, args []any) {
	switch what {
	case tenants.CountMembers:
		return `members WHERE organization = $1 AND removed_at IS NULL`, nil
	case tenants.CountInvitations:
		return `invitations WHERE organization = $1` + unsettled, nil
	}
	panic(fmt.Sprintf("BUG: nobody counts %q", what))
}
