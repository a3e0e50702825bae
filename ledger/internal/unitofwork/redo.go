package unitofwork

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

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
