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
	number, err := postgres.NextStatement(ctx, tx, closed.Organization)
	if err != nil {
		return err
	}
	statement, made, err := books.Statement(number, closed, sources, at)
	if err != nil || !made {
		return err
	}
	saved, err := postgres.SaveStatement(ctx, tx, statement)
	if saved {
		books.Events = append(books.Events, statement.Ready(closed))
	}
	return err
}
