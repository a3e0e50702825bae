// Package postgres keeps what the events of tenants say now, in the same transaction as the events, and answers
// questions about it.
package postgres

import (
	"embed"
	"io/fs"

	"github.com/weirlog/weir/shared/pg"
)

// Schema is the schema of this module.
const Schema = "tenants"

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the tables of this package.
func Migrations() pg.MigrationSet {
	root, err := fs.Sub(files, "migrations")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return pg.MigrationSet{Name: "tenants", FS: root}
}
