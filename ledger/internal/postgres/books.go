package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

// SaveBooks stores opened books with their transfers, grants and the
// charges' usage. It makes their account states due and notifies
// Channel at commit.
func SaveBooks(ctx context.Context, tx pgx.Tx, booked time.Time, opened map[string]*ledger.Books, charges []ledger.Charge) error {
	var books []orgBook
	var due []string
	for _, id := range sortedKeys(opened) {
		for _, book := range opened[id].All() {
			books = append(books, orgBook{id, book})
		}
		if !opened[id].Organization.Provisional() {
			due = append(due, id)
		}
	}
	if err := copyTransfers(ctx, tx, booked, opened); err != nil {
		return err
	}
	var batch pgx.Batch
	queueBooks(&batch, books)
	usesOf(charges).queue(&batch)
	queueGrants(&batch, opened)
	queueLines(&batch, opened)
	queueBudgets(&batch, opened)
	queueUnpublished(&batch, due)
	batch.Queue(`SELECT pg_notify($1, '')`, Channel)
	return tx.SendBatch(ctx, &batch).Close()
}

func usesOf(charges []ledger.Charge) *useSums {
	uses := newUseSums()
	for i := range charges {
		uses.add(charges[i].Use())
	}
	return uses
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// EnsureDays creates the daily partitions for transfers of these instants.
func EnsureDays(ctx context.Context, tx pgx.Tx, instants ...time.Time) error {
	return pg.EnsureDays(ctx, tx, "transfers", instants...)
}
