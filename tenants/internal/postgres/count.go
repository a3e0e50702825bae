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

// Count is how many members or open invitations an organization has.
func Count(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, _ time.Time) (int, error) {
	counted := `members WHERE organization = $1 AND removed_at IS NULL`
	switch what {
	case tenants.CountMembers:
	case tenants.CountInvitations:
		counted = `invitations WHERE organization = $1` + unsettled
	default:
		panic(fmt.Sprintf("BUG: nobody counts %q", what))
	}
	return query.One(ctx, in, organization, pgx.RowTo[int], `SELECT count(*) FROM `+counted)
}
