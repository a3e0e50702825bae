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
	"github.com/weirlog/weir/ledger/internal/snapshot"
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

// A Service reads statements.
type Service struct {
	Reads *snapshot.Reader
}

// List lists an organization's statements with numbers below before,
// the latest first, with totals only. 0 is the start.
func (s *Service) List(ctx context.Context, organization string, before int64, limit int) (found []ledger.Statement, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Statements(ctx, tx, organization, before, limit)
		return err
	})
	return found, err
}

// Statement reads one statement.
func (s *Service) Statement(ctx context.Context, organization string, number int64) (found ledger.Statement, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.LoadStatement(ctx, tx, organization, number)
		return err
	})
	return found, err
}
