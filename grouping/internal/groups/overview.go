package groups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// newestShown is how many groups an overview shows.
const newestShown = 5

// Overview returns how the errors of a project are, and its newest unresolved groups.
func (s *Service) Overview(ctx context.Context, organization, project string) (found postgres.Overview, newest []postgres.Group, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found, err = postgres.FindOverview(ctx, tx, organization, project, s.Clock()); err != nil || found.Unresolved == 0 {
			return err
		}
		page, err := postgres.Groups(ctx, tx, organization, postgres.GroupQuery{
			Project: project, Status: grouping.Unresolved, Sort: postgres.ByFirstSeen, Limit: newestShown,
		})
		newest = page.Groups
		return err
	})
	return found, newest, err
}
