package service

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// settling is how long what was accepted before something is due has to come and be booked: then it is done.
const settling = time.Minute

// advancedAtOnce is how many organizations one transaction advances.
const advancedAtOnce = 20

// An Advancer does what is due by itself: it ends periods, and starts and ends grants. Of several each takes the organizations that no
// other has.
type Advancer struct {
	Service  *Service
	Pool     *pgxpool.Pool
	CaughtUp func() error // nil once all of the log is booked: nothing is closed before
	Interval time.Duration
	Logger   *slog.Logger
	Wake     func() // what became true is to be published
}

// Run advances until ctx ends. A failure is logged, and tried again after Interval.
func (a *Advancer) Run(ctx context.Context) error {
	ticker := time.NewTicker(a.Interval)
	defer ticker.Stop()
	for {
		if err := a.RunOnce(ctx); err != nil && ctx.Err() == nil {
			a.Logger.Warn("cannot do what is due", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// RunOnce does all that is due, if the log is booked.
func (a *Advancer) RunOnce(ctx context.Context) error {
	if caughtUp := a.CaughtUp() == nil; !caughtUp {
		return nil
	}
	for {
		done, err := a.Service.Advance(ctx, a.Pool)
		if err != nil || done == 0 {
			return err
		}
		a.Wake()
	}
}

// Advance does what is due about some organizations, by the clock that is behind, and returns of how many.
func (s *Service) Advance(ctx context.Context, pool *pgxpool.Pool) (advanced int, err error) {
	ahead, err := s.Ahead(ctx)
	if err != nil {
		return 0, err
	}
	err = pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		now := s.now()
		through := now.Add(-settling - max(0, ahead))
		due, err := postgres.LockDue(ctx, tx, through, advancedAtOnce)
		if err != nil || len(due) == 0 {
			return err
		}
		advanced = len(due)
		opened, err := s.openWhole(ctx, tx, due)
		if err != nil {
			return err
		}
		return s.advance(ctx, tx, opened, now, through)
	})
	if err != nil {
		return 0, fmt.Errorf("cannot advance the books: %w", err)
	}
	return advanced, nil
}

func (s *Service) advance(ctx context.Context, tx pgx.Tx, opened map[string]*ledger.Books, now, through time.Time) error {
	decision := ledger.Advanced{Through: through}
	var moved []string
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		books := opened[id]
		if books.Due().After(through) { // a grant was used up before it expired
			continue
		}
		if err := books.Decide(decision, books.DecisionCause(now)); err != nil {
			return fmt.Errorf("organization %q: %w", id, err)
		}
		moved = append(moved, id)
	}
	if err := s.saveDecided(ctx, tx, now, opened); err != nil {
		return err
	}
	for _, id := range moved {
		request := Request{Actor: "time"}
		if err := s.keep(ctx, tx, id, opened[id].Organization.Decisions-1, request, []ledger.Decision{decision}); err != nil {
			return err
		}
	}
	return s.Save(ctx, tx, eventsOf(opened))
}
