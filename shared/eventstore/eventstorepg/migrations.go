package eventstorepg

import (
	"embed"

	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations makes the table events in the schema that they are applied to.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "eventstore", FS: migrations, Rights: pg.Rights{
		"events":              "SELECT, INSERT, UPDATE, DELETE", // what is erased is emptied, what is past goes
		"events_position_seq": "USAGE",
	}}
}
