package main

import (
	"context"
	"os"

	"github.com/weirlog/weir/deploy/resume"
)

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
    could revoke them.
  - Credentials and accounts are published again, so that recreated compacted topics have them: each in its present state, none that has ended.

What is lost is named by organization and time as far as the ledger has charged it. What no consumer had applied can't be counted. It refuses where a position
is halted and nobody can tell where it continues, and where some have applied a recreated topic and others have not.

  weir resume                          shows what would be done
  weir resume --yes                    does it; the services have to be stopped
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
