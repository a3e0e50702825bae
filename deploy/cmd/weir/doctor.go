package main

import (
	"context"
	"os"

	"github.com/weirlog/weir/deploy/doctor"
)

const doctorHelp = `Looks at an installation from its settings alone, and says of each thing that is wrong what to do about it: settings, secrets, certificate,
disk, files, backups, brokers, topics, access, clocks, databases, roles, migrations, consumers, parked records, outboxes, the books. It changes nothing.

  weir doctor                  what make run has started, or what the environment names
  weir doctor ledger           one module
  weir doctor --json           for programs

It takes the variables that the services take. WEIR_DATABASE_URL is the database of all modules; where each has one of its own, name these with
WEIR_INGEST_DATABASE_URL, WEIR_LEDGER_DATABASE_URL, WEIR_GROUPING_DATABASE_URL and WEIR_TENANTS_DATABASE_URL. As everywhere, a name with _FILE behind it
names a file that holds the secret. Where WEIR_LEDGER_MIGRATE_DATABASE_URL and the like are set, the roles that serve must own nothing.
WEIR_REPLICA_DATABASE_URL, or WEIR_LEDGER_REPLICA_DATABASE_URL and the like, is looked at, too.

A failure is what does not work or will lose something; a warning works, and should be looked at. Exit status: 0 where nothing fails, 2 where something
does; with --strict, 1 where there are warnings alone. Each check takes 5 s at most (--check-timeout).`

type doctorCommand struct {
	doctor.Config `embed:""`

	JSON   bool `name:"json" help:"Print JSON."`
	Strict bool `help:"Exit status 1 where there are warnings."`
}

// Help is called by kong.
func (doctorCommand) Help() string { return doctorHelp }

// An exitStatus ends the process; the findings are printed already.
type exitStatus int

// Error is never shown.
func (exitStatus) Error() string { return "" }

// Run checks, and prints the findings.
func (d *doctorCommand) Run(ctx context.Context) error {
	report := doctor.Run(ctx, d.Config)
	write := report.Table
	if d.JSON {
		write = report.JSON
	}
	if err := write(os.Stdout); err != nil {
		return err
	}
	if status := report.ExitStatus(d.Strict); status != 0 {
		return exitStatus(status)
	}
	return nil
}
