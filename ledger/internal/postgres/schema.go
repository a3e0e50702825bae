package postgres

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
)

// A query's error is left to its rows: pgx returns it from what reads them.

// Schema is the schema of the ledger's tables.
const Schema = "ledger"

// Channel is notified by every transaction that changes books or positions.
const Channel = "weir_ledger_booked"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns all migrations of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{
		pg.Partitions(), bus.Migrations(), inbox.Migrations(), outbox.Migrations(), cursorkey.Migrations(), erasure.Migrations(),
		eventstorepg.Migrations(), {Name: "ledger", FS: migrations, Rights: rights},
	}
}

// rights are what the server needs of each table. Bookings, links and
// statements never change.
var rights = pg.Rights{
	"answers":          "SELECT, INSERT, DELETE",
	"books":            "SELECT, INSERT, UPDATE, DELETE",
	"budgets":          "SELECT, INSERT, UPDATE, DELETE",
	"chains":           "SELECT, INSERT, UPDATE, DELETE",
	"checkpoint_rows":  "SELECT, INSERT, UPDATE, DELETE",
	"checkpoints":      "SELECT, INSERT, UPDATE, DELETE",
	"checked_ranges":   "SELECT, INSERT, UPDATE",
	"cuts":             "SELECT, INSERT, DELETE",
	"folded_transfers": "SELECT, INSERT, UPDATE", // removed with their book
	"grants":           "SELECT, INSERT, UPDATE, DELETE",
	"links":            "SELECT, INSERT, DELETE",
	"organizations":    "SELECT, INSERT, UPDATE, DELETE",
	"period_lines":     "SELECT, INSERT, UPDATE", // removed with their book
	"ranges":           "SELECT, INSERT, DELETE",
	"refusal_days":     "SELECT, INSERT, UPDATE, DELETE",
	"refusals":         "SELECT, INSERT, DELETE",
	"replays":          "SELECT, INSERT, UPDATE, DELETE",
	"seals":            "SELECT, INSERT, UPDATE, DELETE",
	"statements":       "SELECT, INSERT, DELETE",
	"tallies":          "SELECT, INSERT, UPDATE, DELETE",
	"terms":            "SELECT, INSERT, UPDATE",
	"transfers":        "SELECT, INSERT", // folded and removed by day
	"unpublished":      "SELECT, INSERT, UPDATE, DELETE",
	"usage_days":       "SELECT, INSERT, UPDATE, DELETE",
	"usage_hours":      "SELECT, INSERT, UPDATE, DELETE",
	"versions":         "SELECT, USAGE, UPDATE",
}

// Now returns the database's clock. A transaction's own time may be
// old, as it may have waited for a lock.
func Now(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now.UTC(), err
}

// Summarize has the block range indexes of transfers cover recent
// bookings on the days from one instant to another. PostgreSQL does so
// only in a vacuum; until then every query reads what they don't cover.
// It gives way to a vacuum.
func Summarize(ctx context.Context, tx pgx.Tx, from, to time.Time) error {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil { // below deadlock_timeout, which cancels a vacuum
			return err
		}
		if err := pg.SummarizeDays(ctx, tx, "transfers", from, to); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SET LOCAL lock_timeout TO DEFAULT`) // for other waits of tx
		return err
	})
	if err != nil && !pg.IsTransient(err) {
		return fmt.Errorf("cannot summarize the indexes of transfers: %w", err)
	}
	return nil
}
