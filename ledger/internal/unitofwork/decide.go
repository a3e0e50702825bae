package unitofwork

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

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
