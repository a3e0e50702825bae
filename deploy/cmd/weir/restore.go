package main

import (
	"context"
	"fmt"
	"os"

	"github.com/weirlog/weir/deploy/backup"
)

const restoreHelp = `Brings databases back from a backup, into schemas that are empty or not there. Every file is compared with its digest first,
and what came back with the manifest. The role may have another name than before; weir migrate gives the roles that serve their rights again.
Stop the services before; afterwards weir resume compares the positions of consumers with the logs that there are.

  weir restore /var/backups/weir                     the newest backup in it, all modules
  weir restore /var/backups/weir/weir-20261123T030000Z ledger
  weir restore /var/backups/weir --check             only looks whether the backup is whole

What was decided after the backup (organizations, keys, grants, states of error groups) is not in it. What was logged since is in the brokers' log, for as
long as that is kept, and is applied again: once. deploy/docs/backup.md goes through it step by step.`

type restoreCommand struct {
	backup.RestoreConfig `embed:""`
}

// Help is called by kong.
func (restoreCommand) Help() string { return restoreHelp }

// Run restores modules.
func (r *restoreCommand) Run(ctx context.Context) error {
	if _, err := backup.Restore(ctx, r.RestoreConfig, os.Stdout); err != nil {
		return err
	}
	if !r.Check {
		fmt.Fprintln(os.Stdout, "\nNext: weir resume, which shows whether the log reaches back to where these databases are. Start no service before.")
	}
	return nil
}
