package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// joinMapped merges groups that source maps which came later show to be
// one, each pair once: who takes them apart again is not overruled.
func (s *Service) joinMapped(ctx context.Context) error {
	for found := true; found; {
		err := pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) (err error) {
			var join postgres.Join
			if join, found, err = postgres.TakeJoin(ctx, tx); err != nil || !found {
				return err
			}
			if err := pg.AsOrganization(ctx, tx, pg.Organization(join.Organization)); err != nil {
				return err
			}
			return s.join(ctx, tx, join)
		})
		if err != nil {
			return fmt.Errorf("cannot merge groups by a source map: %w", err)
		}
	}
	return nil
}

func (s *Service) join(ctx context.Context, tx pgx.Tx, join postgres.Join) error {
	families, err := join.Families(ctx, tx)
	if err != nil || len(families) < len(join.Groups) {
		return err
	}
	into, other := families[0], families[1]
	if other.Head.Group.FirstSeen.Before(into.Head.Group.FirstSeen) {
		into, other = other, into
	}
	decided, err := into.Kin().Merge([]grouping.Family{other.Kin()}, nil, s.Clock().UTC().Truncate(time.Microsecond))
	var invalid grouping.Invalid
	if errors.Is(err, grouping.ErrFull) || errors.As(err, &invalid) {
		return nil // they stay apart
	}
	if err != nil {
		return err
	}
	of := ""
	if join.Release != "" {
		of = " of release " + join.Release
	}
	why := "The source map" + of + " came: as they were written, errors of this group and another are the same, and were merged."
	for id, d := range decided {
		if d.Reason == "" {
			d.Reason = why
			decided[id] = d
		}
	}
	return s.record(ctx, tx, join.Organization, postgres.MadeOf(families, decided), postgres.Author{})
}
