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

// Refuse saves refusals by quota with what they exhaust, and returns the
// events they cause. Refusals must be valid.
func (s *Service) Refuse(ctx context.Context, tx pgx.Tx, booked time.Time, refusals []ledger.Refusal) ([]ledger.Event, error) {
	if len(refusals) == 0 {
		return nil, nil
	}
	refusals = slices.Clone(refusals)
	opened, err := s.exhaust(ctx, tx, refusals)
	if err != nil {
		return nil, err
	}
	if err := postgres.SaveRefusals(ctx, tx, booked, refusals); err != nil {
		return nil, fmt.Errorf("cannot save refusals: %w", err)
	}
	if len(opened) == 0 {
		return nil, nil
	}
	if err := unitofwork.SaveOpened(ctx, tx, booked, opened); err != nil {
		return nil, err
	}
	return unitofwork.EventsOf(opened), nil
}

// exhaust opens the books that refusals exhaust, and notes so in both. An
// unknown organization has none, as its account is not published. A
// refusal that was published twice counts once.
func (s *Service) exhaust(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) (map[string]*ledger.Books, error) {
	opened, err := s.openRefused(ctx, tx, refusals)
	if err != nil || len(opened) == 0 {
		return nil, err
	}
	fresh, err := postgres.UnsavedRefusals(ctx, tx, refusals)
	if err != nil {
		return nil, fmt.Errorf("cannot find the refusals already saved: %w", err)
	}
	for _, i := range fresh {
		if open := opened[refusals[i].Organization]; open != nil {
			if err := open.Refuse(&refusals[i]); err != nil {
				return nil, err
			}
		}
	}
	return opened, nil
}

func (s *Service) openRefused(ctx context.Context, tx pgx.Tx, refusals []ledger.Refusal) (map[string]*ledger.Books, error) {
	ids := exhaustedOf(refusals)
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := postgres.LockKnown(ctx, tx, ids)
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
	return opened, nil
}

// exhaustedOf returns the organizations that refusals exhaust, sorted and
// unique.
func exhaustedOf(refusals []ledger.Refusal) (ids []string) {
	for _, r := range refusals {
		if r.Exhausts {
			ids = append(ids, r.Organization)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
