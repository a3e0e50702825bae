package statements

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Issue issues the statements of periods that have just closed. The
// books are saved and still locked.
func Issue(ctx context.Context, tx pgx.Tx, at time.Time, opened map[string]*ledger.Books) error {
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		for _, event := range opened[id].Events {
			if event.Kind != ledger.PeriodClosed {
				continue
			}
			if err := issue(ctx, tx, at, opened[id], event); err != nil {
				return fmt.Errorf("cannot make the statement of organization %q for the period of %s: %w", id, event.Book.Period.Start.Format(time.DateOnly), err)
			}
		}
	}
	return nil
}

func issue(ctx context.Context, tx pgx.Tx, at time.Time, books *ledger.Books, closed ledger.Event) error {
	sources, err := postgres.StatementSources(ctx, tx, closed.Organization, closed.Book.Period)
	if err != nil {
		return err
	}
	if err := follow(ctx, tx, books); err != nil {
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

// follow reads what the next statement follows: the last one, also of an
// older program, and the chain, whose head statements carry.
func follow(ctx context.Context, tx pgx.Tx, books *ledger.Books) error {
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
