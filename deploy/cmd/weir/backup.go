package main

import (
	"context"
	"fmt"
	"os"

	"github.com/weirlog/weir/deploy/backup"
)

const backupHelp = `Copies the databases of an installation into a new folder, while it runs. Each module is copied as it is at one instant,
with the positions of its consumers: after a restore they go on in the log where the copy ends. deploy/docs/backup.md says what else
there is to keep, and how often.

  weir backup --to /var/backups/weir --keep 14       every night, the last two weeks are kept
  weir backup --to /var/backups/weir --keys          with the files of secrets and certificates

It takes the variables that the services take, and PostgreSQL's own pg_dump, of the server's version or later. The role has to own the modules' tables,
or to read all of them: where WEIR_LEDGER_MIGRATE_DATABASE_URL and the like are set, it is theirs. Passwords are never arguments. A folder has its name
once it is whole: manifest.json has the digest of every file, the position of every consumer, how many rows each table has, where every log began and
ended, and the roots of the ledger's chains; nothing of any tenant's. weir restore brings it back.

Exit status: 0 where the backup is whole. 1 where there is none: then nothing is left behind and nothing removed. 1 with a line that begins with "whole"
where the backup is there, but older ones could not be removed.`

type backupCommand struct {
	backup.Config `embed:""`
}

// Help is called by kong.
func (backupCommand) Help() string { return backupHelp }

// Run makes a backup.
func (b *backupCommand) Run(ctx context.Context) error {
	dir, err := backup.Make(ctx, b.Config, os.Stdout)
	if dir != "" {
		fmt.Fprintln(os.Stdout, "whole     "+dir)
	}
	return err
}
