package bus

import (
	"embed"

	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the bus's tables. Every module that consumes or
// relays applies them to its own schema.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "bus", FS: migrations, Rights: pg.Rights{
		"bus_positions": "SELECT, INSERT, UPDATE",
		"bus_relays":    "SELECT, INSERT, UPDATE",
		"bus_read":      "SELECT, INSERT, UPDATE",
		"bus_deferred":  "SELECT, INSERT, UPDATE, DELETE",
		"bus_parked":    "SELECT, INSERT, UPDATE, DELETE",
	}}
}
