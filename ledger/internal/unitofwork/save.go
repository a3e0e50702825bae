package unitofwork

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/statements"
)

// SaveDecided stores decided books and organizations, issues the
// statements of closed periods, and keeps the decisions.
func (w *Writer) SaveDecided(ctx context.Context, tx pgx.Tx, at time.Time, request Request, opened map[string]*ledger.Books) error {
	return saveDecided(ctx, tx, at, opened, func(books *ledger.Books) error { return w.keep(ctx, tx, request, books) })
}

func saveDecided(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books, keep func(*ledger.Books) error) error {
	if err := SaveOpened(ctx, tx, at, opened); err != nil {
		return err
	}
	if err := statements.Issue(ctx, tx, at, opened); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		if err := keep(opened[id]); err != nil {
			return err
		}
	}
	return postgres.SaveOrganizations(ctx, tx, opened)
}

// SaveOpened stores opened books and creates the days of their transfers.
func SaveOpened(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books) error {
	var days []time.Time
	var charges []ledger.Charge
	for _, books := range opened {
		days = append(days, effectiveDays(books.Transfers)...)
		charges = append(charges, testCharges(books)...)
	}
	if err := postgres.EnsureDays(ctx, tx, days...); err != nil {
		return fmt.Errorf("cannot create the days of transfers: %w", err)
	}
	if err := postgres.SaveBooks(ctx, tx, at, opened, charges); err != nil {
		return fmt.Errorf("cannot write the books: %w", err)
	}
	return nil
}

// testCharges returns the charges of requests of tests.
func testCharges(books *ledger.Books) (charges []ledger.Charge) {
	for _, use := range books.TestUses {
		if use.Rule == "" {
			charges = append(charges, use.Charge)
		}
	}
	return charges
}

func effectiveDays(transfers []ledger.Transfer) []time.Time {
	days := make([]time.Time, len(transfers))
	for i, transfer := range transfers {
		days[i] = transfer.Effective()
	}
	return days
}

// EventsOf returns the events of opened books by organization, in the
// order of the outbox.
func EventsOf(opened map[string]*ledger.Books) (events []ledger.Event) {
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		events = append(events, opened[id].Facts()...)
	}
	return events
}
