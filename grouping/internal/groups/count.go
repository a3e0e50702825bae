package groups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// Libraries returns the libraries of projects that have
// some. The caller's transaction must see all organizations.
func (s *Service) Libraries(ctx context.Context, tx pgx.Tx, projects []postgres.Project) (map[postgres.Project]grouping.Libraries, error) {
	return postgres.FindLibraries(ctx, tx, projects)
}

// Count adds errors to their groups and creates groups as far as the
// budgets allow. The caller's transaction must see all organizations.
func (s *Service) Count(ctx context.Context, tx pgx.Tx, tally *grouping.Tally) (postgres.Effect, error) {
	return postgres.Writer{NewGroups: s.NewGroups}.Apply(ctx, tx, tally.Counts())
}
