package eventstorepg

import (
	"embed"
	"io/fs"

	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the table events in the schema that they are applied to.
func Migrations() pg.MigrationSet {
	root, err := fs.Sub(files, "migrations")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return pg.MigrationSet{Name: "eventstore", FS: root}
}
