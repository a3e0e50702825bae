// Package postgres keeps what the events of tenants say now, in the same transaction as the events, and answers
// questions about it.
package postgres

import (
	"embed"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

// Schema is the schema of this module.
const Schema = "tenants"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{bus.Migrations(), eventstorepg.Migrations(), cursorkey.Migrations(), {Name: "tenants", FS: migrations}}
}
