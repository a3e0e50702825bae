package main

import (
	"context"
	"os"

	"github.com/weirlog/weir/deploy/migrate"
)

const migrateHelp = `Brings the databases of modules up to date. It takes the variables that the services take, and for each module the address for
the role that owns its schema:

  WEIR_LEDGER_DATABASE_URL           the role that serves (or WEIR_DATABASE_URL, for all modules)
  WEIR_LEDGER_MIGRATE_DATABASE_URL   the role that owns the schema (or WEIR_MIGRATE_DATABASE_URL)

Each may stand in a file that the variable with _FILE names. The first gets exactly the rights that serving needs. Where the second is not set, the first
owns the schema and does both, as services then do at their start by themselves. It may run again, and beside services.`

type migrateCommand struct {
	migrate.Config `embed:""`
}

// Help is called by kong.
func (migrateCommand) Help() string { return migrateHelp }

// Run brings the databases up to date.
func (m *migrateCommand) Run(ctx context.Context) error { return migrate.Run(ctx, m.Config, os.Stdout) }
