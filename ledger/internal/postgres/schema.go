package postgres

import (
	"embed"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
)

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
