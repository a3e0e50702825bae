package relay

import (
	"embed"

	"github.com/weirlog/weir/shared/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations changes bus_relays, which the bus made. Whoever applies the bus's
// applies it too, behind those of outboxes.
func Migrations() pg.MigrationSet { return pg.MigrationSet{Name: "relay", FS: migrations} }
