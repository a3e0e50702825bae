package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// Count is how many of something an organization has at now.
func (v *Views) Count(ctx context.Context, organization pg.Organization, what tenants.Countable, now time.Time) (int, error) {
	query, args := countOf(what, now)
	return one(ctx, v, organization, pgx.RowTo[int], `SELECT count(*) FROM `+query, args...)
}

func countOf(what tenants.Countable, now time.Time) (query string, args []any) {
	switch what {
	case tenants.CountProjects:
		return `projects WHERE organization = $1`, nil
	case tenants.CountAPIKeys:
		return `api_keys WHERE organization = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`, []any{now}
	case tenants.CountAPIKeysKept:
		return `api_keys WHERE organization = $1 AND coalesce(least(revoked_at, expires_at), 'infinity') > $2`, []any{now.Add(-tenants.EndedKept)}
	case tenants.CountServiceTokens:
		return `service_tokens WHERE organization = $1 AND revoked_at IS NULL`, nil
	case tenants.CountServiceTokensKept:
		return `service_tokens WHERE organization = $1 AND coalesce(revoked_at, 'infinity') > $2`, []any{now.Add(-tenants.EndedKept)}
	case tenants.CountMembers:
		return `members WHERE organization = $1 AND removed_at IS NULL`, nil
	case tenants.CountInvitations:
		return `invitations WHERE organization = $1` + unsettled, nil
	}
	panic(fmt.Sprintf("BUG: nobody counts %q", what))
}
