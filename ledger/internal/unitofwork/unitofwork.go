package unitofwork

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/pg"
)

// room refuses decisions beyond ledger.MaxDecisions. One lookup by
// number is enough, as they are stored in order of time.
func room(ctx context.Context, tx pgx.Tx, o ledger.Organization, more int, at time.Time) error {
	return o.RoomForDecisions(more, at, func(number int64) (time.Time, error) { return postgres.WhenDecided(ctx, tx, o.ID, number) })
}

// A Writer writes decisions.
type Writer struct {
	Pool      *pgxpool.Pool
	Decisions *postgres.DecisionStore
	Save      SaveEvents
	IDs       func() string // unique, URL-safe, at most 60 characters
	Time      DatabaseTime
	Limiter   *httpapi.Limiter
	Settle    func(ctx context.Context) // before each decision: waits a little until what was accepted so far is booked
}

// Deciders configures the limiter of so many concurrent decisions, each of
// another organization, as those of one wait for its lock anyway. A
// decision holds a connection, even while it waits for a lock.
func Deciders(places int, longest time.Duration) httpapi.LimiterConfig {
	return httpapi.LimiterConfig{Slots: places, PerOrganization: 1, Wait: longest, Module: "weir_ledger", Noun: "decisions", Asked: "changes"}
}

// DatabaseTime is the common clock of all replicas, read in the
// deciding transaction: a lock's holder must not wait for another connection.
type DatabaseTime func(ctx context.Context, tx pgx.Tx) (time.Time, error)

// SaveEvents saves events for publication, as the last step of their transaction.
type SaveEvents func(ctx context.Context, tx pgx.Tx, events []ledger.Event) error

// lock opens the books of a known organization that is not deleted,
// as which the transaction acts from then on.
func (w *Writer) lock(ctx context.Context, tx pgx.Tx, organization string) (*ledger.Books, error) {
	if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
		return nil, snapshot.NoOrganization(err)
	}
	o, found, err := postgres.LockOrganization(ctx, tx, organization)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books of organization %q: %w", organization, err)
	}
	deleted, err := postgres.IsDeleted(ctx, tx, organization)
	if err == nil && (!found || o.Provisional() || deleted) {
		err = ledger.ErrNoOrganization
	}
	if err != nil {
		return nil, err
	}
	opened, err := OpenWhole(ctx, tx, map[string]ledger.Organization{organization: o})
	return opened[organization], err
}

// OpenWhole opens all open books of organizations with their grants.
func OpenWhole(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization) (map[string]*ledger.Books, error) {
	books, err := postgres.LoadOpenBooks(ctx, tx, known)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books: %w", err)
	}
	ids := make([]string, 0, len(known))
	for id := range known {
		ids = append(ids, id)
	}
	grants, err := postgres.LiveGrants(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("cannot read the grants: %w", err)
	}
	return Open(ctx, tx, known, grants, books)
}

// Open opens books with their organizations' budgets.
func Open(ctx context.Context, tx pgx.Tx, known map[string]ledger.Organization,
	grants map[string][]ledger.Grant, books map[string][]ledger.Book) (map[string]*ledger.Books, error) {
	budgets, err := postgres.LoadBudgets(ctx, tx, withBudgets(known))
	if err != nil {
		return nil, err
	}
	opened := make(map[string]*ledger.Books, len(known))
	for id, organization := range known {
		opened[id] = ledger.OpenBooks(organization, grants[id], books[id]...).WithBudgets(budgets[id])
	}
	return opened, nil
}

// withBudgets returns the organizations that have any.
func withBudgets(known map[string]ledger.Organization) (ids []string) {
	for id, organization := range known {
		if organization.Budgets > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// A Request identifies a deciding request. Its actor and id are stored
// with the decision.
type Request struct {
	Actor          string // id of the credential
	ID             string
	IdempotencyKey string // empty: every request is new
}

// A Choice is what to decide about books at an instant.
type Choice func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error)

// Decide decides about an organization in one transaction under the
// lock of its books, and returns what answer reads there. A repeated
// key gets the first answer; ErrReused where the input differs.
func Decide[T any](ctx context.Context, w *Writer, organization string, request Request, input any, choose Choice,
	answer func(tx pgx.Tx, books *ledger.Books, at time.Time) (T, error)) (result T, err error) {
	w.Settle(ctx)
	err = w.withRetries(ctx, organization, func(tx pgx.Tx) error {
		books, err := w.lock(ctx, tx, organization)
		if err != nil {
			return err
		}
		again, err := once(organization, request, input)
		if err != nil {
			return err
		}
		if known, err := again.Load(ctx, tx, &result); err != nil || known {
			return err
		}
		at, recorded, err := w.decide(ctx, tx, books, request, choose)
		if err != nil {
			return err
		}
		if result, err = answer(tx, books, at); err != nil {
			return err
		}
		if err := again.Save(ctx, tx, result, recorded); err != nil {
			return err
		}
		return w.Save(ctx, tx, books.Facts())
	})
	return result, err
}

// decide books what is chosen, and returns the instant
// at which it is in force and the one that is recorded.
func (w *Writer) decide(ctx context.Context, tx pgx.Tx, books *ledger.Books, request Request, choose Choice) (at, recorded time.Time, err error) {
	now, err := w.Time(ctx, tx)
	if err != nil {
		return at, recorded, fmt.Errorf("cannot read the clock of the database: %w", err)
	}
	at, recorded = books.Organization.NotBefore(now), books.Organization.RecordedAt(now)
	decisions, err := choose(tx, books, at)
	if err == nil {
		err = room(ctx, tx, books.Organization, len(decisions), recorded)
	}
	if err == nil {
		err = w.book(ctx, tx, books, at, recorded, request, decisions)
	}
	return at, recorded, err
}

// maxAttempts is how often a transaction is tried: concurrent ones may
// create the same day.
const maxAttempts = 3

// withRetries runs fn in a transaction in the organization's turn, with
// retries where the database asks for one.
func (w *Writer) withRetries(ctx context.Context, organization string, fn func(tx pgx.Tx) error) (err error) {
	release, err := w.Limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	for range maxAttempts {
		if err = pg.InTx(ctx, w.Pool, fn); err == nil || !pg.IsTransient(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// book books decisions at an instant and stores them with their recording time.
func (w *Writer) book(ctx context.Context, tx pgx.Tx, books *ledger.Books, at, recorded time.Time, request Request, decisions []ledger.Decision) error {
	for _, decision := range decisions {
		if err := books.Decide(decision, books.DecisionCause(at)); err != nil {
			return err
		}
	}
	if len(decisions) == 0 {
		return nil
	}
	books.Organization.DecidedAt = recorded
	return w.SaveDecided(ctx, tx, recorded, request, map[string]*ledger.Books{books.Organization.ID: books})
}

// keep appends what was decided to the organization's stream, with its
// time and the positions of the log that it follows. The caller holds
// the lock of the books, so everything below these positions is booked.
func (w *Writer) keep(ctx context.Context, tx pgx.Tx, request Request, books *ledger.Books) error {
	if len(books.Steps) == 0 {
		return nil
	}
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return err
	}
	positions, err := postgres.Positions(ctx, tx)
	if err != nil {
		return fmt.Errorf("cannot read the positions of the log: %w", err)
	}
	behind, err := json.Marshal(positions)
	if err != nil {
		return err
	}
	metadata := eventstore.Metadata{
		"actor": request.Actor, "request": request.ID, postgres.BookedBehind: string(behind),
		postgres.DecidedAt: books.Organization.DecidedAt.UTC().Format(time.RFC3339Nano),
	}
	return w.appendSteps(ctx, tx, books, metadata)
}

// appendSteps appends the decisions of opened books, each with the hash
// of the one before, and moves the organization's head.
func (w *Writer) appendSteps(ctx context.Context, tx pgx.Tx, books *ledger.Books, metadata eventstore.Metadata) error {
	o := &books.Organization
	number := o.Decisions - int64(len(books.Steps))
	chained := postgres.Chained{Statements: o.Statements, Stated: o.Stated}
	if books.Chain != nil {
		chained.Chain = *books.Chain
	}
	for _, step := range books.Steps {
		chained.Previous, chained.Before, chained.After = o.Head, step.Before, step.After
		text, err := chained.Text()
		if err != nil {
			return err
		}
		metadata[postgres.ChainedBy] = text
		if err := w.Decisions.AppendTx(ctx, tx, postgres.Decisions(o.ID), number, metadata, step.Decision); err != nil {
			return err
		}
		number++
		if o.Head, err = postgres.HashStored(number, step.Decision, metadata); err != nil {
			return err
		}
	}
	return nil
}

// once identifies a request and its input, so that it applies once.
func once(organization string, request Request, input any) (idempotency.Request, error) {
	text, err := json.Marshal(input)
	return idempotency.NewRequest("answers", organization, request.IdempotencyKey, fmt.Appendf(nil, "%T%s", input, text)), err
}

// Redo applies a stored decision again at its own time. Its events are saved again with the same ids.
// Everything booked before it must be booked. tx acts as the system.
func (w *Writer) Redo(ctx context.Context, tx pgx.Tx, decided postgres.Decided) error {
	known, err := postgres.LockOrganizations(ctx, tx, decided.At, []string{decided.Organization})
	if err != nil {
		return err
	}
	opened, err := OpenWhole(ctx, tx, known)
	if err != nil {
		return err
	}
	books := opened[decided.Organization]
	if next := books.Organization.Decisions + 1; next != decided.Number {
		return fmt.Errorf("BUG: decision %d comes where %d is next", decided.Number, next)
	}
	if err := books.Decide(decided.Decision, books.DecisionCause(books.Organization.NotBefore(decided.At))); err != nil {
		return err
	}
	books.Organization.DecidedAt, books.Chain = decided.At, &decided.Chained.Chain
	err = saveDecided(ctx, tx, decided.At, opened, func(books *ledger.Books) (err error) {
		books.Organization.Head, err = postgres.DecisionHash(ctx, tx, decided.Organization, decided.Number)
		return err
	})
	if err != nil {
		return err
	}
	return w.Save(ctx, tx, books.Facts())
}

// SaveDecided stores decided books and organizations, issues the
// statements of closed periods, and keeps the decisions.
func (w *Writer) SaveDecided(ctx context.Context, tx pgx.Tx, at time.Time, request Request, opened map[string]*ledger.Books) error {
	return saveDecided(ctx, tx, at, opened, func(books *ledger.Books) error { return w.keep(ctx, tx, request, books) })
}

func saveDecided(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books, keep func(*ledger.Books) error) error {
	if err := SaveOpened(ctx, tx, at, opened); err != nil {
		return err
	}
	if err := issueStatements(ctx, tx, at, opened); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		if err := keep(opened[id]); err != nil {
			return err
		}
	}
	return postgres.SaveOrganizations(ctx, tx, opened)
}

// issueStatements issues the statements of periods that have just closed. The
// books are saved and still locked.
func issueStatements(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books) error {
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		for _, event := range opened[id].Events {
			if event.Kind != ledger.PeriodClosed {
				continue
			}
			if err := issueStatement(ctx, tx, at, opened[id], event); err != nil {
				return fmt.Errorf("cannot make the statement of organization %q for the period of %s: %w", id, event.Book.Period.Start.Format(time.DateOnly), err)
			}
		}
	}
	return nil
}

func issueStatement(ctx context.Context, tx pgx.Tx, at time.Time, books *ledger.Books, closed ledger.Event) error {
	sources, err := postgres.StatementSources(ctx, tx, closed.Organization, closed.Book.Period)
	if err != nil {
		return err
	}
	if err := followStatement(ctx, tx, books); err != nil {
		return err
	}
	statement, made := books.Statement(closed, sources, at)
	if !made {
		return nil
	}
	statement, saved, err := postgres.SaveStatement(ctx, tx, statement)
	if saved {
		books.Issued(statement, closed)
	}
	return err
}

// followStatement reads what the next statement follows: the last one, also of an
// older program, and the chain, whose head statements carry.
func followStatement(ctx context.Context, tx pgx.Tx, books *ledger.Books) error {
	last, err := postgres.LastStatement(ctx, tx, books.Organization.ID)
	if err != nil {
		return err
	}
	books.Organization.Statements = max(books.Organization.Statements, last)
	if books.Chain != nil {
		return nil
	}
	head, err := postgres.Head(ctx, tx, pg.Organization(books.Organization.ID))
	books.Chain = &ledger.Head{Sequence: head.Sequence, Hash: head.Hash}
	return err
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
