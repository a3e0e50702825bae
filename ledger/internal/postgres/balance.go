package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// ErrNoOrganization is the error for an organization that the ledger does not know, or not at the instant asked for.
var ErrNoOrganization = errors.New("no such organization")

// A Balance is what an organization may send and has sent, and how far the log had been applied when that was true.
type Balance struct {
	Organization ledger.Organization
	Tier         ledger.Tier
	Terms        ledger.Terms
	Book         ledger.Book
	Applied      contract.Positions
	At           time.Time
}

// Balance reads the balance of now. tx should be a snapshot.
func (s *Store) Balance(ctx context.Context, tx pgx.Tx, organization pg.Organization) (Balance, error) {
	now := s.Clock().UTC()
	o, err := s.known(ctx, tx, organization, now)
	if err != nil {
		return Balance{}, err
	}
	start := calendar.PeriodAt(now, o.AnchorDay).Start
	books, err := loadBooks(ctx, tx, map[bookKey]bool{{string(organization), start}: true})
	if err != nil {
		return Balance{}, err
	}
	applied, err := Positions(ctx, tx)
	if err != nil {
		return Balance{}, err
	}
	return s.balance(o, now, applied, books[string(organization)]...)
}

// BalanceAt reads the balance of the period that holds an instant, by what had been booked until then.
func (s *Store) BalanceAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) (Balance, error) {
	o, err := s.known(ctx, tx, organization, at)
	if err != nil {
		return Balance{}, err
	}
	period := calendar.PeriodAt(at, o.AnchorDay)
	balances, err := bookedBy(ctx, tx, organization, period, at)
	if err != nil {
		return Balance{}, err
	}
	applied, err := positionsAt(ctx, tx, at)
	if err != nil {
		return Balance{}, err
	}
	if balances == (ledger.Balances{}) {
		return s.balance(o, at, applied)
	}
	return s.balance(o, at, applied, ledger.Book{Period: period, Balances: balances})
}

// known reads an organization that has a plan at an instant.
func (s *Store) known(ctx context.Context, tx pgx.Tx, organization pg.Organization, at time.Time) (ledger.Organization, error) {
	o, found, err := loadOrganization(ctx, tx, string(organization))
	switch {
	case err != nil:
		return o, err
	case !found || o.Provisional() || at.Before(o.Plans[0].From):
		return o, ErrNoOrganization
	}
	return o, nil
}

func (s *Store) balance(o ledger.Organization, at time.Time, applied contract.Positions, books ...ledger.Book) (Balance, error) {
	tier := o.Plans.At(at)
	terms, err := s.Tiers.Terms(tier)
	if err != nil {
		return Balance{}, err
	}
	book, err := ledger.OpenBooks(o, s.Tiers, books...).At(at)
	return Balance{Organization: o, Tier: tier, Terms: terms, Book: book, Applied: applied, At: at}, err
}

// Exists returns ErrNoOrganization where the ledger knows no such organization.
func (s *Store) Exists(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
	o, found, err := loadOrganization(ctx, tx, string(organization))
	if err == nil && (!found || o.Provisional()) {
		return ErrNoOrganization
	}
	return err
}
