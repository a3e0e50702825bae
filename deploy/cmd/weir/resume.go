package main

import (
	"context"
	"os"

	"github.com/weirlog/weir/deploy/resume"
)

const resumeHelp = `Compares the position of every consumer with the existing log, after a restore or with new brokers,
and shows what is read again and what is lost. With --yes it lets everything go on:

  - Where the log reaches back, nothing has to be done: consumers read again what their database lacks, and each record takes effect once.
  - Where topics were recreated, their offsets would begin at 0, below the positions that databases keep. Offsets name charges in the ledger, so they must
    not come twice: the log of each partition is made to begin behind the furthest position, and what it has already follows there.
  - Where the log does not reach back, positions are moved to its beginning, and the ledger accounts for what is missing.
  - Credentials that the database of tenants does not have, because they were made or changed after its backup, are taken back from the brokers: nobody
    could revoke them.
  - Credentials and accounts are published again, so that recreated compacted topics have them: each in its present state, none that has ended.
  - Where a log lost its end within the same topic, everybody has to have applied what is left. It refuses where that is not so, where a position is halted
    though it lies in its log (offsets may name other records by now), and where some have applied a recreated topic and others have not.

Make a backup right after it where logs were moved: their beginning is gone, so that ledger-rebuild refuses.

  weir resume            shows what would be done
  weir resume --yes      does it; the services have to be stopped

It takes the variables that the services take. The user at the brokers needs Read, Write, Describe and Delete on the topics and Describe on the consumer
groups, and weir topics has to have made the topics. It refuses while anybody shares in a group. Interrupted, it goes on from there; done twice it changes
nothing more.`

type resumeCommand struct {
	resume.Config `embed:""`
}

// Help is called by kong.
func (resumeCommand) Help() string { return resumeHelp }

// Run compares, and moves what must be moved.
func (r *resumeCommand) Run(ctx context.Context) error { return resume.Run(ctx, r.Config, os.Stdout) }
