package relay

import (
	"embed"

	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations changes the bus's table bus_relays. Apply it with the
// bus's migrations, after those of outboxes.
func Migrations() pg.MigrationSet { return pg.MigrationSet{Name: "relay", FS: migrations} }
