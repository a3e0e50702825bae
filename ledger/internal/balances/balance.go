package balances

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Balance is what an organization may use and has used, and the
// positions of the log that it counts.
type Balance struct {
	Organization ledger.Organization
	Plan         ledger.Plan
	Terms        ledger.Terms
	Book         ledger.Book
	Applied      contract.Positions
	At           time.Time
	Booking      *Booking // nil: of a past instant
}

// State returns the organization's state.
func (b Balance) State() string { return b.Organization.State(b.Book, b.At) }

// longestBooking exceeds the time of a booking transaction, which the bus limits.
const longestBooking = 2 * time.Minute

// Balance reads the balance of now or of an instant. For a past instant
// it never changes.
func (s *Service) Balance(ctx context.Context, organization string, at time.Time) (balance Balance, err error) {
	if !at.IsZero() && s.Reads.Clock().Sub(at) < longestBooking {
		if err := s.awaitBooked(ctx, organization); err != nil {
			return Balance{}, err
		}
	}
	if at.IsZero() {
		return s.runningBalance(ctx, organization)
	}
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		balance, err = s.balanceAt(ctx, tx, organization, at)
		return err
	})
	return balance, err
}

// runningBalance returns the current balance and how far the log is booked.
func (s *Service) runningBalance(ctx context.Context, organization string) (balance Balance, err error) {
	end, unknown := s.Waiter.recentEnd(ctx)
	var standing postgres.Standing
	err = s.Reads.ReadBatch(ctx, organization, func(batch *pgx.Batch, organization pg.Organization) {
		standing.Queue(batch, organization, s.Reads.Clock().UTC())
	})
	if err != nil {
		return balance, err
	}
	balance, err = s.balanceOf(standing)
	balance.Booking = bookingOf(standing, end, unknown == nil, s.Reads.Clock())
	return balance, err
}

// awaitBooked waits until no later booking has a time before the call.
func (s *Service) awaitBooked(ctx context.Context, organization string) error {
	release, err := s.Reads.Limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	if err := postgres.AwaitApplied(ctx, s.Reads.Pool); err != nil {
		return err
	}
	if err := postgres.AwaitBooks(ctx, s.Reads.Pool, organization); err != nil {
		return snapshot.NoOrganization(err)
	}
	return nil
}

// Running reads the current balance in a snapshot of the organization.
func (s *Service) Running(ctx context.Context, tx pgx.Tx, organization pg.Organization) (Balance, error) {
	standing, err := postgres.LoadStanding(ctx, tx, organization, s.Reads.Clock().UTC())
	if err != nil {
		return Balance{}, err
	}
	return s.balanceOf(standing)
}

func (s *Service) balanceOf(standing postgres.Standing) (Balance, error) {
	now := standing.Organization.Now(standing.At)
	if !standing.Found || !standing.Organization.HasPlanAt(now) {
		return Balance{}, ledger.ErrNoOrganization
	}
	return s.balance(standing.Organization, now, standing.Applied, standing.Books...)
}

// balanceAt reads the balance of an instant's period, as booked by then.
func (s *Service) balanceAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) (Balance, error) {
	o, err := snapshot.OrganizationAt(ctx, tx, organization, at)
	if err != nil {
		return Balance{}, err
	}
	period := o.PeriodAt(at)
	if period.Start.Before(s.Kept.TransfersSince(s.Reads.Clock())) {
		return Balance{}, ledger.ErrNotKept
	}
	balances, err := postgres.BalancesAt(ctx, tx, organization, period, at)
	if err != nil {
		return Balance{}, err
	}
	applied, err := postgres.PositionsAt(ctx, tx, at)
	if err != nil {
		return Balance{}, err
	}
	if o.Pool, err = postgres.PoolAt(ctx, tx, organization, o.Pool, at); err != nil {
		return Balance{}, err
	}
	if balances == (ledger.Balances{}) {
		return s.balance(o, at, applied)
	}
	return s.balance(o, at, applied, ledger.Book{Period: period, Balances: balances})
}

func (s *Service) balance(o ledger.Organization, at time.Time, applied contract.Positions, books ...ledger.Book) (Balance, error) {
	plan := o.Plans.At(at)
	book, err := ledger.OpenBooks(o, nil, books...).At(at)
	return Balance{Organization: o, Plan: plan, Terms: plan.Terms(), Book: book, Applied: applied, At: at}, err
}
