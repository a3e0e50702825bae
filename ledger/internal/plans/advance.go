package plans

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/horizon"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// advancedAtOnce is how many organizations one transaction advances.
const advancedAtOnce = 20

// An Advancer ends periods, and starts and ends grants, when they
// are due. Several share the organizations.
type Advancer struct {
	Service  *Service
	Pool     *pgxpool.Pool
	End      horizon.LogEnd
	Interval time.Duration
	Logger   *slog.Logger
	Wake     func() // what became true is to be published

	booked horizon.Horizon
}

// Run advances until ctx ends. A failure is logged, and tried again after Interval.
func (a *Advancer) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, a.Interval, a.RunOnce, lifecycle.Warn(a.Logger, "cannot do what is due"))
}

// RunOnce does all that is due and was so when what is booked was accepted.
func (a *Advancer) RunOnce(ctx context.Context) error {
	through, due, err := a.due(ctx)
	if err != nil || !due {
		return err
	}
	advanced, err := a.Service.Advance(ctx, a.Pool, through)
	if advanced > 0 {
		a.Wake()
	}
	return err
}

// due reports whether anything is due, and through which instant it can be done.
func (a *Advancer) due(ctx context.Context) (through time.Time, due bool, err error) {
	var now time.Time
	err = pg.InTxAsSystem(ctx, a.Pool, func(tx pgx.Tx) error {
		if now, err = a.Service.Work.Time(ctx, tx); err == nil {
			due, err = postgres.IsDue(ctx, tx, now.Add(-horizon.Settling))
		}
		return err
	})
	if err != nil || !due {
		return through, false, err
	}
	booked, err := a.booked.Move(ctx, a.Pool, now, a.End)
	return booked.Add(-horizon.Settling), !booked.IsZero(), err
}

// Advance does all that was due through an instant, by which everything
// accepted has to be booked, and returns about how many organizations.
// One that fails keeps no other waiting.
func (s *Service) Advance(ctx context.Context, pool *pgxpool.Pool, through time.Time) (advanced int, err error) {
	p := pass{service: s, pool: pool, through: through}
	for more := true; more; {
		if more, err = p.next(ctx); err != nil {
			return p.advanced, fmt.Errorf("cannot advance the books: %w", err)
		}
	}
	if err := p.locked(ctx); err != nil {
		return p.advanced, fmt.Errorf("cannot look whose books are left: %w", err)
	}
	if len(p.failed) > 0 {
		return p.advanced, fmt.Errorf("cannot advance the books of %d organizations, of the first: %w", len(p.failed), p.err)
	}
	return p.advanced, nil
}

// A pass is one look for all that is due.
type pass struct {
	service  *Service
	pool     *pgxpool.Pool
	through  time.Time
	advanced int
	failed   []string // organizations, left for the next pass
	err      error    // of the first
}

// next advances some organizations in one transaction or, where
// that fails, each in its own.
func (p *pass) next(ctx context.Context) (more bool, err error) {
	ids, err := p.someDue(ctx)
	switch {
	case err == nil:
		p.advanced += len(ids)
		return len(ids) > 0, nil
	case len(ids) == 0 || ctx.Err() != nil:
		return false, err
	}
	p.each(ctx, ids)
	return true, nil
}

// locked advances organizations that were left out because their
// books were locked, once these are free: those of one that is
// always charged would never be so by chance.
func (p *pass) locked(ctx context.Context) error {
	var ids []string
	err := pg.InTxAsSystem(ctx, p.pool, func(tx pgx.Tx) (err error) {
		ids, err = postgres.Due(ctx, tx, p.through, p.failed, advancedAtOnce)
		return err
	})
	if err == nil {
		p.each(ctx, ids)
	}
	return err
}

// each advances organizations one by one, so that a failure is of one.
func (p *pass) each(ctx context.Context, ids []string) {
	for _, id := range ids {
		due, err := p.alone(ctx, id)
		switch {
		case err != nil:
			p.failed, p.err = append(p.failed, id), cmp.Or(p.err, fmt.Errorf("organization %q: %w", id, err))
		case due:
			p.advanced++
		}
	}
}

// someDue advances organizations about which something is due, and returns
// which these are, also where it fails with one of them.
func (p *pass) someDue(ctx context.Context) (ids []string, err error) {
	err = pg.InTxAsSystem(ctx, p.pool, func(tx pgx.Tx) error {
		now, err := p.service.Work.Time(ctx, tx)
		if err != nil {
			return err
		}
		if ids, err = postgres.LockDue(ctx, tx, p.through, p.failed, advancedAtOnce); err != nil || len(ids) == 0 {
			return err
		}
		return p.service.advance(ctx, tx, ids, now, p.through)
	})
	return ids, err
}

// alone advances one organization, if something is due about it
// once its books are free.
func (p *pass) alone(ctx context.Context, id string) (due bool, err error) {
	err = pg.InTxAsSystem(ctx, p.pool, func(tx pgx.Tx) error {
		if due, err = postgres.LockIfDue(ctx, tx, p.through, id); err != nil || !due {
			return err
		}
		now, err := p.service.Work.Time(ctx, tx)
		if err != nil {
			return err
		}
		return p.service.advance(ctx, tx, []string{id}, now, p.through)
	})
	return due, err
}

func (s *Service) advance(ctx context.Context, tx pgx.Tx, ids []string, now, through time.Time) error {
	known, err := postgres.LockKnown(ctx, tx, ids)
	if err != nil {
		return fmt.Errorf("cannot read the organizations: %w", err)
	}
	opened, err := unitofwork.OpenWhole(ctx, tx, s.Work.Rules, known)
	if err != nil {
		return err
	}
	decision := ledger.Advanced{Through: through}
	var moved []string
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		books := opened[id]
		if books.Due().After(through) { // a grant was used up before it expired
			continue
		}
		if err := books.Decide(decision, books.DecisionCause(books.Organization.NotBefore(now))); err != nil {
			return fmt.Errorf("organization %q: %w", id, err)
		}
		moved = append(moved, id)
	}
	if err := unitofwork.SaveDecided(ctx, tx, now, opened); err != nil {
		return err
	}
	for _, id := range moved {
		request := unitofwork.Request{Actor: "time"}
		organization := opened[id].Organization
		if err := s.Work.Keep(ctx, tx, id, organization.Decisions-1, organization.DecidedAt, request, []ledger.Decision{decision}); err != nil {
			return err
		}
	}
	return s.Work.Save(ctx, tx, unitofwork.EventsOf(opened))
}
