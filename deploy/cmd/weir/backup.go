package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/deploy/resume"
)

type backupCommands struct {
	Once       backupCommand     `cmd:"" default:"withargs" help:"Copy the databases once, each module's apart."`
	Continuous continuousCommand `cmd:"" help:"Keep base backups of the PostgreSQL server and all its write-ahead log, and restore the newest by itself to prove it."`
}

const continuousHelp = `Backs up a PostgreSQL server as a whole for as long as it runs: base backups, and the write-ahead log as it is written.
weir recover brings the server back as it was at any instant since the oldest base backup. The newest base backup is restored
by itself into a scratch server, with all log that follows, and looked at.

  weir backup continuous --to /var/backups/weir

WEIR_BACKUP_DATABASE_URL is for a role with REPLICATION; CREATE ROLE backup LOGIN REPLICATION PASSWORD '...' makes it, and pg_hba.conf has to let it in for
replication. The server keeps its log in the slot weir_backup until it is here: bound that with max_slot_wal_keep_size. The machine needs PostgreSQL's server
and client programs of the server's major version, and room for a restored copy. Nobody else reaches the scratch server.

What fails is logged, counted in the metrics (WEIR_METRICS_LISTEN), and tried again. It may be killed at any time. WEIR_BACKUP_DIR shows the doctor its state.`

type continuousCommand struct {
	continuous.Config `embed:""`
}

// Help is called by kong.
func (continuousCommand) Help() string { return continuousHelp }

// Run backs up until the process is stopped.
func (c *continuousCommand) Run(ctx context.Context, logger *slog.Logger) error {
	return continuous.Run(ctx, c.Config, logger)
}

const recoverHelp = `Makes a data directory from a continuous backup. Its server recovers itself at its first start, until the given time, and then serves.
The backup stays as it is, and has to be readable for the server until then.

  weir recover /var/backups/weir --to /var/lib/postgresql/17/main
  weir recover /var/backups/weir --to .weir/postgres/data --until 2026-11-23T14:05:00Z

Stop all services before. Start the server, then weir resume: it shows whether the brokers' log reaches back to where the databases are. A continuous backup
into the same directory goes on with a new base backup.`

type recoverCommand struct {
	continuous.RecoverConfig `embed:""`
}

// Help is called by kong.
func (recoverCommand) Help() string { return recoverHelp }

// Run makes the data directory.
func (r *recoverCommand) Run(ctx context.Context) error {
	if err := continuous.Recover(ctx, r.RecoverConfig, os.Stdout); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "ready     %s\n\nNext: start its server, which recovers itself, and then weir resume. Start no service before.\n", r.To)
	return nil
}

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

const restoreHelp = `Brings databases back from a backup, into schemas that are empty or not there. Every file is compared with its digest first,
and what came back with the manifest. The role may have another name than before; weir migrate gives the roles that serve their rights again.
Stop the services before; afterwards weir resume compares the positions of consumers with the logs that there are.

  weir restore /var/backups/weir                     the newest backup in it, all modules
  weir restore /var/backups/weir/weir-20261123T030000Z ledger
  weir restore /var/backups/weir --check             only looks whether the backup is whole

What was decided after the backup (organizations, keys, grants, states of error groups) is not in it; weir resume lists organizations, projects
and keys. What was logged since is in the brokers' log, for as long as that is kept, and is applied again: once. deploy/docs/backup.md goes through
it step by step.`

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

const resumeHelp = `Compares the position of every consumer with the existing log, after a loss of records, a restore or with new brokers, and shows what
is read again and what is lost. With --yes it lets everything go on:

  - Where the log reaches back, nothing has to be done: consumers read again what their database lacks, and each record takes effect once.
  - Where a log lost its end, fillers take the offsets that consumers have applied, so that none comes twice. What is left of the log stays, and consumers that
    have not applied it do so at the next start.
  - Where topics were recreated, their offsets would begin at 0, below the positions that databases keep. The log of each partition is made to begin behind
    the furthest position, and what it has already follows there.
  - Where the log does not reach back, positions are moved to its beginning, and the ledger accounts for what is missing.
  - Where a log lost its end and has grown since, consumers read again what was written since; not the ledger, which goes by offsets.
  - Credentials that the database of tenants does not have, because they were made or changed after its backup, are taken back from the brokers: nobody
    could revoke them. Readopted keys are not.
  - Organizations, projects and keys that the topics or other modules know and tenants does not are listed: made after its backup, or lost in another way.
    Nothing becomes of them without a choice. --readopt=ID makes them exist again, with all of theirs that is listed; an organization needs an --owner, who
    gets a link. --erase=ID erases them in every module. all is for all of them. While nothing is chosen for an organization or a project the exit status is 1.
  - Credentials and accounts are published again, so that recreated compacted topics have them: each in its present state, none that has ended.

What is lost is named by organization and time as far as the ledger has charged it. What no consumer had applied can't be counted. It refuses where a position
is halted and nobody can tell where it continues, and where some have applied a recreated topic and others have not.

  weir resume                          shows what would be done
  weir resume --yes                    does it; the services have to be stopped
  weir resume --yes --readopt=org_01a2 --owner=ada@acme.example --erase=org_01c9
  weir resume --data-dir=.weir --yes   for make run, while it is stopped

It takes the variables that the services take. Without WEIR_BROKERS or a database it starts those of the data directory, and with --yes cuts a log there that
is damaged; what it cuts is kept in kafka/damaged. The user at given brokers needs Read, Write, Describe and Delete on the topics and Describe on the consumer
groups, and weir topics has to have made the topics. It refuses while anybody shares in a group. Interrupted, it goes on from there; done twice it changes
nothing more. Make a backup right after it.`

type resumeCommand struct {
	resume.Config `embed:""`
}

// Help is called by kong.
func (resumeCommand) Help() string { return resumeHelp }

// Run compares, and moves what must be moved.
func (r *resumeCommand) Run(ctx context.Context) error { return resume.Run(ctx, r.Config, os.Stdout) }
