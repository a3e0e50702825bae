package testclocks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
)

// A Clock is an organization's time.
type Clock struct {
	Organization string
	Test         bool
	At           time.Time
}

func clockOf(o ledger.Organization, now time.Time) Clock { return Clock{o.ID, o.IsTest(), o.Now(now)} }

// Clock reads an organization's time.
func (s *Service) Clock(ctx context.Context, organization string) (found Clock, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		o, now, err := s.Reads.OrganizationNow(ctx, tx, organization)
		found = clockOf(o, now)
		return err
	})
	return found, err
}

// Advance sets the clock of a test and does everything due by then;
// zero keeps the time. An organization without charges becomes a test.
func (s *Service) Advance(ctx context.Context, organization string, request unitofwork.Request, to time.Time) (Clock, error) {
	choose := func(tx pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		now, err := s.Work.Time(ctx, tx)
		if err != nil {
			return nil, err
		}
		return books.AdvanceClock(to, books.Organization.RecordedAt(now))
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, to, choose, func(_ pgx.Tx, books *ledger.Books, at time.Time) (Clock, error) {
		return clockOf(books.Organization, at), nil
	})
}
