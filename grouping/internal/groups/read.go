package groups

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// maxSearchTime ends the page of a long search.
const maxSearchTime = 2 * time.Second

// read runs fn in a snapshot of the organization's rows. Organizations take
// turns. A Problem 429 means that the organization's share is used up.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	return s.Replica.Snapshot(ctx, s.Reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		return fn(tx, pg.Organization(organization))
	})
}
