package booking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// Refuse saves refusals by quota and returns the events they cause.
// Refusals must be valid.
func (s *Service) Refuse(ctx context.Context, tx pgx.Tx, booked time.Time, refusals []ledger.Refusal) ([]ledger.Event, error) {
	if len(refusals) == 0 {
		return nil, nil
	}
	if err := postgres.SaveRefusals(ctx, tx, refusals); err != nil {
		return nil, fmt.Errorf("cannot save refusals: %w", err)
	}
	refusals = slices.DeleteFunc(slices.Clone(refusals), func(r ledger.Refusal) bool { return !r.Exhausts })
	if len(refusals) == 0 {
		return nil, nil
	}
	opened, err := s.openRefused(ctx, tx, refusals)
	if err != nil {
		return nil, err
	}
	if err := unitofwork.SaveOpened(ctx, tx, booked, opened); err != nil {
		return nil, err
	}
	return unitofwork.EventsOf(opened), nil
}

// openRefused opens the books that refusals exhaust. An unknown
// organization has none, as its account is not published.
func (s *Service) openRefused(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) (map[string]*ledger.Books, error) {
	known, err := postgres.LockKnown(ctx, tx, refusedOf(refusals))
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books: %w", err)
	}
	keys := map[postgres.BookKey]bool{}
	for _, r := range refusals {
		if o, ok := known[r.Organization]; ok {
			keys[postgres.BookKey{Organization: o.ID, Start: o.PeriodAt(r.Cause.At).Start}] = true
		}
	}
	books, err := postgres.LoadBooks(ctx, tx, keys)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	opened, err := unitofwork.Open(ctx, tx, known, nil, books)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	for _, r := range refusals {
		if open := opened[r.Organization]; open != nil {
			if err := open.Refuse(r); err != nil {
				return nil, err
			}
		}
	}
	return opened, nil
}

// refusedOf returns the organizations of refusals, sorted and unique.
func refusedOf(refusals []ledger.Refusal) []string {
	ids := make([]string, len(refusals))
	for i, r := range refusals {
		ids[i] = r.Organization
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
