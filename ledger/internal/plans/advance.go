package plans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// organizationsPerTx is how many organizations one transaction advances.
const organizationsPerTx = 20

// An Advancer ends periods, and starts and ends grants, when they are
// due, and has organizations follow changed rules. Replicas share the
// organizations.
type Advancer struct {
	Service  *Service
	Pool     *pgxpool.Pool
	End      snapshot.LogEnd
	Interval time.Duration
	Logger   *slog.Logger
	Wake     func() // wakes the publisher

	booked snapshot.Horizon
}

// Run advances until ctx ends. It logs a failure and retries after Interval.
func (a *Advancer) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, a.Interval, a.RunOnce, lifecycle.Warn(a.Logger, "cannot do what is due"))
}

// RunOnce has organizations follow the rules of the installation, and
// does everything that is due through the booked watermark.
func (a *Advancer) RunOnce(ctx context.Context) error {
	followed, err := a.Service.Follow(ctx, a.Pool)
	if followed > 0 {
		a.Wake()
	}
	return errors.Join(err, a.advance(ctx))
}

func (a *Advancer) advance(ctx context.Context) error {
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

// due reports whether anything is due and through which instant it can be done.
func (a *Advancer) due(ctx context.Context) (through time.Time, due bool, err error) {
	var now time.Time
	err = pg.InTxAsSystem(ctx, a.Pool, func(tx pgx.Tx) error {
		if now, err = a.Service.Work.Time(ctx, tx); err == nil {
			due, err = postgres.IsDue(ctx, tx, now.Add(-snapshot.Settling))
		}
		return err
	})
	if err != nil || !due {
		return through, false, err
	}
	booked, err := a.booked.Move(ctx, a.Pool, now, a.End)
	return booked.Add(-snapshot.Settling), !booked.IsZero(), err
}

// Advance does everything due through an instant, by which all accepted
// logs must be booked. It returns about how many organizations it
// advanced. A failing one doesn't stop the others.
func (s *Service) Advance(ctx context.Context, pool *pgxpool.Pool, through time.Time) (advanced int, err error) {
	p := advancePass{service: s, pool: pool, through: through}
	for more := true; more; {
		if more, err = p.next(ctx); err != nil {
			return p.advanced, fmt.Errorf("cannot advance the books: %w", err)
		}
	}
	if err := p.locked(ctx); err != nil {
		return p.advanced, fmt.Errorf("cannot find the remaining organizations: %w", err)
	}
	if len(p.failed) > 0 {
		return p.advanced, fmt.Errorf("cannot advance the books of %d organizations, the first: %w", len(p.failed), p.err)
	}
	return p.advanced, nil
}

// An advancePass advances everything that is due.
type advancePass struct {
	service  *Service
	pool     *pgxpool.Pool
	through  time.Time
	advanced int
	failed   []string // organizations, left for the next pass
	err      error    // of the first
}

// next advances some organizations in one transaction or, if that
// fails, each in its own.
func (p *advancePass) next(ctx context.Context) (more bool, err error) {
	ids, err := p.lockedDue(ctx)
	switch {
	case err == nil:
		p.advanced += len(ids)
		return len(ids) > 0, nil
	case len(ids) == 0 || ctx.Err() != nil:
		return false, err
	}
	p.oneByOne(ctx, ids)
	return true, nil
}

// locked waits for organizations whose books were locked and advances
// them: one under constant load would always be skipped.
func (p *advancePass) locked(ctx context.Context) error {
	var ids []string
	err := pg.InTxAsSystem(ctx, p.pool, func(tx pgx.Tx) (err error) {
		ids, err = postgres.Due(ctx, tx, p.through, p.failed, organizationsPerTx)
		return err
	})
	if err == nil {
		p.oneByOne(ctx, ids)
	}
	return err
}

// oneByOne advances each organization alone, so that a failure is of one.
func (p *advancePass) oneByOne(ctx context.Context, ids []string) {
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

// lockedDue locks and advances due organizations. It returns them even
// if one fails.
func (p *advancePass) lockedDue(ctx context.Context) (ids []string, err error) {
	err = pg.InTxAsSystem(ctx, p.pool, func(tx pgx.Tx) error {
		now, err := p.service.Work.Time(ctx, tx)
		if err != nil {
			return err
		}
		if ids, err = postgres.LockDue(ctx, tx, p.through, p.failed, organizationsPerTx); err != nil || len(ids) == 0 {
			return err
		}
		return p.service.advance(ctx, tx, ids, now, p.through)
	})
	return ids, err
}

// alone advances one organization, if it is due once its books are free.
func (p *advancePass) alone(ctx context.Context, id string) (due bool, err error) {
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
	opened, err := unitofwork.OpenWhole(ctx, tx, known)
	if err != nil {
		return err
	}
	decision := ledger.Advanced{Through: through}
	if err := decideDue(opened, decision, now); err != nil {
		return err
	}
	if err := s.Work.SaveDecided(ctx, tx, now, unitofwork.Request{Actor: "time"}, opened); err != nil {
		return err
	}
	return s.Work.Save(ctx, tx, unitofwork.EventsOf(opened))
}

// decideDue decides in the books that are due.
func decideDue(opened map[string]*ledger.Books, decision ledger.Advanced, now time.Time) error {
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		books := opened[id]
		if books.Due().After(decision.Through) { // a grant used up before its expiry
			continue
		}
		if err := books.Decide(decision, books.DecisionCause(books.Organization.NotBefore(now))); err != nil {
			return fmt.Errorf("organization %q: %w", id, err)
		}
	}
	return nil
}

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
		decisions, err := rules.Follow(books.Organization, at)
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
