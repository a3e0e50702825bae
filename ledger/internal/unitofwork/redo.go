package unitofwork

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Redo applies a stored decision again at its own time and returns the
// books after it. Its events are saved again with the same ids.
// Everything booked before it must be booked. tx acts as the system.
func (w *Writer) Redo(ctx context.Context, tx pgx.Tx, decided postgres.Decided) (*ledger.Books, error) {
	known, err := postgres.LockKnown(ctx, tx, []string{decided.Organization})
	if err != nil {
		return nil, err
	}
	opened, err := OpenWhole(ctx, tx, w.Rules, known)
	if err != nil {
		return nil, err
	}
	books, ok := opened[decided.Organization]
	if !ok {
		return nil, ledger.ErrNoOrganization
	}
	if next := books.Organization.Decisions + 1; next != decided.Number {
		return nil, fmt.Errorf("BUG: decision %d comes where %d is next", decided.Number, next)
	}
	if err := books.Decide(decided.Decision, books.DecisionCause(books.Organization.NotBefore(decided.At))); err != nil {
		return nil, err
	}
	books.Organization.DecidedAt = decided.At
	if err := SaveDecided(ctx, tx, decided.At, opened); err != nil {
		return nil, err
	}
	return books, w.Save(ctx, tx, books.Facts())
}
