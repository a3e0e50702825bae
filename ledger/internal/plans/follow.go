package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
)

// Follow decides that organizations follow the installation's recorded
// rules, where they have others. It returns how many it decided about.
func (s *Service) Follow(ctx context.Context, pool *pgxpool.Pool) (changed int, err error) {
	for more := true; more; {
		err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
			n, of, err := s.followSome(ctx, tx)
			changed, more = changed+n, of > 0
			return err
		})
		if err != nil {
			return changed, fmt.Errorf("cannot have organizations follow the terms of their tiers: %w", err)
		}
	}
	return changed, nil
}

// followSome compares some organizations with the rules, and returns
// how many it changed of them.
func (s *Service) followSome(ctx context.Context, tx pgx.Tx) (changed, of int, err error) {
	rules, err := postgres.LoadRules(ctx, tx)
	if err != nil {
		return 0, 0, err
	}
	known, err := postgres.LockOutdated(ctx, tx, rules.Version, organizationsPerTx)
	if err != nil || len(known) == 0 {
		return 0, 0, err
	}
	now, err := s.Work.Time(ctx, tx)
	if err != nil {
		return 0, 0, err
	}
	opened, err := unitofwork.OpenWhole(ctx, tx, known)
	if err != nil {
		return 0, 0, err
	}
	if err := follow(opened, rules, now); err != nil {
		return 0, 0, err
	}
	if err := postgres.SetFollowed(ctx, tx, rules.Version, slices.Collect(maps.Keys(known))); err != nil {
		return 0, 0, err
	}
	maps.DeleteFunc(opened, func(_ string, books *ledger.Books) bool { return len(books.Steps) == 0 })
	if err := s.Work.SaveDecided(ctx, tx, now, unitofwork.Request{Actor: "settings"}, opened); err != nil {
		return 0, 0, err
	}
	return len(opened), len(known), s.Work.Save(ctx, tx, unitofwork.EventsOf(opened))
}

// follow decides in the books whose organizations have other rules.
func follow(opened map[string]*ledger.Books, rules ledger.Rules, now time.Time) error {
	for id, books := range opened {
		at := books.Organization.NotBefore(now)
		decisions, err := books.Follow(rules, at)
		for _, decision := range decisions {
			err = books.Decide(decision, books.DecisionCause(at))
			books.Organization.DecidedAt = books.Organization.RecordedAt(now)
		}
		if err != nil {
			return fmt.Errorf("organization %q: %w", id, err)
		}
	}
	return nil
}
