package schema

import (
	"embed"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
)

// Name is the schema of this module.
const Name = "tenants"

//go:embed */migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{
		bus.Migrations(), eventstorepg.Migrations(), cursorkey.Migrations(), erasure.Migrations(),
		{Name: "tenants", FS: migrations, Rights: rights()},
	}
}
