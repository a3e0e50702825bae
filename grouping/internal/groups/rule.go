package groups

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
)

// RulesAt returns the rules of a project for errors that were accepted at a
// time. The caller's transaction must see the project.
func (s *Service) RulesAt(ctx context.Context, tx pgx.Tx, of postgres.Project, learned grouping.Learned, accepted time.Time) (*grouping.Ruleset, error) {
	return s.rules.At(ctx, tx, of, learned, accepted)
}
