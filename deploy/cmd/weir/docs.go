package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirlog/weir/deploy/doctor"
	"github.com/weirlog/weir/deploy/errorcodes"
	gateway "github.com/weirlog/weir/deploy/gateway/app"
	"github.com/weirlog/weir/deploy/settings"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/process"
	tenants "github.com/weirlog/weir/tenants/app/command"
)

// docsCommand writes the pages generated from the source: make docs.
type docsCommand struct {
	Root string `arg:"" help:"Root of the repository."`
}

// Run writes them.
func (d *docsCommand) Run() error {
	pages, err := pages(d.Root)
	if err != nil {
		return err
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(d.Root, "deploy", "docs", name), page, 0o644); err != nil { //nolint:gosec // for everybody to read
			return fmt.Errorf("cannot write a page: %w", err)
		}
	}
	return nil
}

// pages returns the generated pages by file name.
func pages(root string) (map[string][]byte, error) {
	var list, codes bytes.Buffer
	err := settings.Write(&list, []settings.Program{
		{Name: "weir", Config: new(commands)},
		{Name: "gateway", Config: process.Options[gateway.Config]()},
		{Name: "ingest", Config: process.Options[ingest.Config]()},
		{Name: "ledger", Config: process.Options[ledger.Config]()},
		{Name: "grouping", Config: process.Options[grouping.Config]()},
		{Name: "tenants", Config: process.Options[tenants.Commands]()},
	})
	if err != nil {
		return nil, err
	}
	answers, err := errorcodes.Scan(root)
	if err != nil {
		return nil, err
	}
	if err := errorcodes.Write(&codes, answers); err != nil {
		return nil, err
	}
	return map[string][]byte{"settings.md": list.Bytes(), "errors.md": codes.Bytes()}, nil
}

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
does; with --strict, 1 where there are warnings alone. Each check takes 30 s at most (--check-timeout).`

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
