// Package postgres keeps the books of the ledger.
//
// An organization's books are written by one transaction at a time: the lock is the organization's row, and locks are
// taken in the order of the organizations, so writers wait for each other and never deadlock on it.
package postgres

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
)

// Schema is the schema of the ledger's tables.
const Schema = "ledger"

// Channel is where the database tells that a transaction changed books: see Store.write.
const Channel = "weir_ledger_booked"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{bus.Migrations(), inbox.Migrations(), outbox.Migrations(), cursorkey.Migrations(), {Name: "ledger", FS: migrations}}
}

// A Store writes and reads books. Every method that writes takes the transaction as an argument.
type Store struct {
	Tiers ledger.Tiers
	Clock func() time.Time
}

// Charge books what was accepted, all of it in tx. An organization that is not known yet becomes provisional.
// The charges have to be valid.
func (s *Store) Charge(ctx context.Context, tx pgx.Tx, booked time.Time, charges []ledger.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	if err := s.ensureDays(ctx, tx, charges); err != nil {
		return err
	}
	known, err := s.lock(ctx, tx, booked, organizationsOf(charges))
	if err != nil {
		return fmt.Errorf("cannot lock the books: %w", err)
	}
	opened, err := s.open(ctx, tx, known, charges)
	if err != nil {
		return fmt.Errorf("cannot open the books: %w", err)
	}
	for _, charge := range charges {
		if err := opened[charge.Organization].Charge(charge); err != nil {
			return err
		}
	}
	if err := s.write(ctx, tx, booked, opened, usageOf(charges)); err != nil {
		return fmt.Errorf("cannot write the books: %w", err)
	}
	return nil
}

// StartPlan gives an organization its first plan; where it has one already, nothing happens.
func (s *Store) StartPlan(ctx context.Context, tx pgx.Tx, booked time.Time, organization string, plan ledger.Plan, cause ledger.Cause) error {
	known, err := s.lock(ctx, tx, booked, []string{organization})
	if err != nil {
		return fmt.Errorf("cannot lock the books of organization %q: %w", organization, err)
	}
	all, err := loadAllBooks(ctx, tx, pg.Organization(organization))
	if err != nil {
		return fmt.Errorf("cannot open the books of organization %q: %w", organization, err)
	}
	books := ledger.OpenBooks(known[organization], s.Tiers, all...)
	if err := books.StartPlan(plan, cause); err != nil || len(books.Transfers) == 0 {
		return err
	}
	if err := savePlans(ctx, tx, books.Organization); err != nil {
		return err
	}
	if err := s.ensureDaysOf(ctx, tx, books.Transfers); err != nil {
		return err
	}
	return s.write(ctx, tx, booked, map[string]*ledger.Books{organization: books}, nil)
}

// organizationsOf lists the charged organizations, each once, sorted.
func organizationsOf(charges []ledger.Charge) []string {
	seen := make(map[string]bool, len(charges))
	var ids []string
	for _, charge := range charges {
		if !seen[charge.Organization] {
			seen[charge.Organization] = true
			ids = append(ids, charge.Organization)
		}
	}
	slices.Sort(ids)
	return ids
}

// open loads the books of every period that the charges touch.
func (s *Store) open(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization, charges []ledger.Charge) (map[string]*ledger.Books, error) {
	books, err := loadBooks(ctx, tx, bookKeys(known, charges))
	if err != nil {
		return nil, err
	}
	opened := make(map[string]*ledger.Books, len(known))
	for id, organization := range known {
		opened[id] = ledger.OpenBooks(organization, s.Tiers, books[id]...)
	}
	return opened, nil
}

func bookKeys(known map[string]ledger.Organization, charges []ledger.Charge) map[bookKey]bool {
	keys := make(map[bookKey]bool, len(known))
	for _, charge := range charges {
		period := calendar.PeriodAt(charge.Cause.At, known[charge.Organization].AnchorDay)
		keys[bookKey{charge.Organization, period.Start}] = true
	}
	return keys
}

// write stores the changed books with their transfers, what follows from them, and a signal to whoever publishes account
// states. The signal leaves with the commit, and reaches publishers in other processes as well.
func (s *Store) write(ctx context.Context, tx pgx.Tx, booked time.Time, opened map[string]*ledger.Books, uses map[usageKey]usage) error {
	var books []orgBook
	var transfers []ledger.Transfer
	var facts []outbox.Fact
	var published []string
	for _, id := range sortedKeys(opened) {
		for _, book := range opened[id].All() {
			books = append(books, orgBook{id, book})
		}
		transfers = append(transfers, opened[id].Transfers...)
		for _, event := range opened[id].Events {
			facts = append(facts, newOutboxFact(event))
		}
		if !opened[id].Organization.Provisional() {
			published = append(published, id)
		}
	}
	if err := copyTransfers(ctx, tx, booked, transfers); err != nil {
		return err
	}
	var batch pgx.Batch
	queueBooks(&batch, books)
	queueUsage(&batch, uses)
	outbox.Queue(&batch, facts)
	queueUnpublished(&batch, published)
	batch.Queue(`SELECT pg_notify($1, '')`, Channel)
	return tx.SendBatch(ctx, &batch).Close()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// ensureDays makes sure that the day partitions of the charges exist.
func (s *Store) ensureDays(ctx context.Context, tx pgx.Tx, charges []ledger.Charge) error {
	days := make([]time.Time, 0, len(charges))
	for _, charge := range charges {
		days = append(days, charge.Cause.At)
	}
	return pg.EnsureDays(ctx, tx, "transfers", days...)
}

func (s *Store) ensureDaysOf(ctx context.Context, tx pgx.Tx, transfers []ledger.Transfer) error {
	days := make([]time.Time, 0, len(transfers))
	for _, transfer := range transfers {
		days = append(days, effective(transfer))
	}
	return pg.EnsureDays(ctx, tx, "transfers", days...)
}
