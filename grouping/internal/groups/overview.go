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

// An Overview is how the errors of a project are, and its newest unresolved groups.
type Overview struct {
	postgres.Overview
	Newest []postgres.Group
}

// Overview finds the overview of a project.
func (g *Groups) Overview(ctx context.Context, organization, project string) (Overview, error) {
	return read(ctx, g.db, organization, func(tx pgx.Tx, organization pg.Organization) (found Overview, err error) {
		if found.Overview, err = postgres.FindOverview(ctx, tx, organization, project, g.db.clock()); err != nil || found.Unresolved == 0 {
			return found, err
		}
		page, err := postgres.Groups(ctx, tx, organization, postgres.GroupQuery{
			Project: project, Status: grouping.Unresolved, Sort: postgres.ByFirstSeen, Limit: newestShown,
		})
		found.Newest = page.Groups
		return found, err
	})
}
