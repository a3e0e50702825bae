package bus

import (
	"embed"
	"io/fs"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations makes the tables bus_positions, bus_parked and bus_relays in the current schema. Every module that consumes or
// relays applies it to its own schema.
var Migrations = root()

// root is the folder itself: the embedded one always exists.
func root() fs.FS {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return migrations
	}
	return files
}
