package rejected

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// A Service shows what was rejected to those who may read the project's logs.
type Service struct {
	Pool     *pgxpool.Pool
	Searches *searches.Service
	Clock    func() time.Time
}

// List lists what was rejected of a project in the last 24 hours, to the hour.
func (s *Service) List(ctx context.Context, who identity.Principal, filter postgres.RejectedFilter) (found []ingest.Rejected, err error) {
	if _, err := s.Searches.Readable(who, filter.Project); err != nil {
		return nil, err
	}
	filter.Since = s.Clock().Add(-postgres.RejectedFor)
	err = pg.ReadAs(ctx, s.Pool, pg.Organization(who.Organization), func(tx pgx.Tx) (err error) {
		found, err = postgres.RejectedEntries(ctx, tx, pg.Organization(who.Organization), filter)
		return err
	})
	return found, err
}
