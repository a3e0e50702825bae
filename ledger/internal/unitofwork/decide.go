package unitofwork

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

// A Request is who asks for a decision. All of it is kept with the decision.
type Request struct {
	Actor          string // id of the credential
	ID             string
	IdempotencyKey string // empty: every request is a new one
}

// Decide decides about an organization, in one transaction and under the lock of its books, and returns what answer reads of it then. A repeated key
// gets the answer of before; ErrReused where the input was another.
func Decide[T any](ctx context.Context, w *Writer, organization string, request Request, input any,
	choose func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error),
	answer func(tx pgx.Tx, books *ledger.Books, at time.Time) (T, error)) (made T, err error) {
	err = w.stubbornly(ctx, organization, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return snapshot.NoOrganization(err)
		}
		books, err := w.lock(ctx, tx, organization)
		if err != nil {
			return err
		}
		again, err := once(organization, request, input)
		if err != nil {
			return err
		}
		if known, err := again.Load(ctx, tx, &made); err != nil || known {
			return err
		}
		now, err := w.Time(ctx, tx)
		if err != nil {
			return fmt.Errorf("cannot read the clock of the database: %w", err)
		}
		at, recorded := books.Organization.NotBefore(now), books.Organization.RecordedAt(now)
		decisions, err := choose(tx, books, at)
		if err == nil {
			err = room(ctx, tx, books.Organization, len(decisions), recorded)
		}
		if err != nil {
			return err
		}
		if err := w.book(ctx, tx, books, at, recorded, request, decisions); err != nil {
			return err
		}
		if made, err = answer(tx, books, at); err != nil {
			return err
		}
		if err := again.Save(ctx, tx, made, recorded); err != nil {
			return err
		}
		return w.Save(ctx, tx, books.Facts())
	})
	return made, err
}

// tries is how often a decision is tried: who makes room for a day may be in the way of others who do.
const tries = 3

// stubbornly runs fn in a transaction once it is the organization's turn, again where the database asks for it.
func (w *Writer) stubbornly(ctx context.Context, organization string, fn func(tx pgx.Tx) error) (err error) {
	leave, err := w.Turns.Enter(ctx, organization)
	if err != nil {
		return err
	}
	defer leave()
	for range tries {
		if err = pg.InTx(ctx, w.Pool, fn); err == nil || !pg.IsTransient(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// book books decisions about an organization, of an instant, and keeps them with the one at which they are recorded.
func (w *Writer) book(ctx context.Context, tx pgx.Tx, books *ledger.Books, at, recorded time.Time, request Request, decisions []ledger.Decision) error {
	before := books.Organization.Decisions
	for _, decision := range decisions {
		if err := books.Decide(decision, books.DecisionCause(at)); err != nil {
			return err
		}
	}
	if len(decisions) == 0 {
		return nil
	}
	books.Organization.DecidedAt = recorded
	if err := SaveDecided(ctx, tx, recorded, map[string]*ledger.Books{books.Organization.ID: books}); err != nil {
		return err
	}
	return w.Keep(ctx, tx, books.Organization.ID, before, recorded, request, decisions)
}

// Keep appends decisions to their organization's stream, with their instant and the positions of the log behind which they take effect. The caller
// has the lock of the books, so what is below was booked before.
func (w *Writer) Keep(ctx context.Context, tx pgx.Tx, organization string, expected int64, at time.Time, request Request,
	decisions []ledger.Decision) error {
	if err := eventstorepg.LockAppends(ctx, tx); err != nil {
		return err
	}
	positions, err := postgres.Positions(ctx, tx)
	if err != nil {
		return fmt.Errorf("cannot read how far the log is booked: %w", err)
	}
	behind, err := json.Marshal(positions)
	if err != nil {
		return err
	}
	metadata := eventstore.Metadata{
		"actor": request.Actor, "request": request.ID, postgres.BookedBehind: string(behind), postgres.DecidedAt: at.UTC().Format(time.RFC3339Nano),
	}
	return w.Decisions.AppendTx(ctx, tx, postgres.Decisions(organization), expected, metadata, decisions...)
}
