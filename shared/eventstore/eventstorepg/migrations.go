package eventstorepg

import (
	"embed"

	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the table events.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "eventstore", FS: migrations, Rights: pg.Rights{
		"events":              "SELECT, INSERT, UPDATE, DELETE", // erasing updates, retention deletes
		"events_position_seq": "USAGE",
	}}
}
