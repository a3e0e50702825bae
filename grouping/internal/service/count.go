package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// Count adds errors to their groups and creates groups for new kinds, as far as the budgets have room. It does so in the
// caller's transaction, which has to see all organizations.
func (s *Service) Count(ctx context.Context, tx pgx.Tx, tally *grouping.Tally) (postgres.Effect, error) {
	return postgres.Writer{NewGroups: s.NewGroups}.Apply(ctx, tx, tally.Counts())
}
