package groups

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Archive archives the groups that have been quiet for as long as their
// projects have set.
func (s *Service) Archive(ctx context.Context) error {
	var all []postgres.Archiving
	err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		all, err = postgres.FindArchiving(ctx, tx)
		return err
	})
	for _, of := range all {
		if err != nil {
			return err
		}
		err = s.archive(ctx, of)
	}
	return err
}

func (s *Service) archive(ctx context.Context, of postgres.Archiving) error {
	for last := (postgres.GroupCursor{}); ; {
		err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			var changed []postgres.Change
			if changed, last, err = postgres.ArchiveQuiet(ctx, tx, of, last, s.Clock().UTC().Truncate(time.Microsecond)); err != nil {
				return err
			}
			return s.Announce(ctx, tx, changed)
		})
		if err != nil || last == (postgres.GroupCursor{}) {
			return err
		}
	}
}
