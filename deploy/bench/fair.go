package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/fairness"
	"github.com/weirlog/weir/shared/httpapi"
)

const fairHelp = `Quiet organizations post a small batch now and then and look at their balance, error groups and entries. Beside them one
organization after the other does what a bad tenant does: a flood, endless bodies, huge answers left unread, silent sockets and
others. The table says what the quiet ones noticed, how much memory Weir took, and what the noisy one was answered. A figure that
misses its goal has an exclamation mark.`

type fairCommand struct {
	subject `embed:""`

	Attacks     []string       `arg:"" optional:"" name:"attack" help:"Attacks to measure; all of them where none is named: ${attacks}."`
	DatabaseURL httpapi.Secret `help:"Empty Postgres database to measure with. Without it one is started." env:"WEIR_BENCH_DATABASE_URL"`
	Each        time.Duration  `help:"How long to watch beside each attack." default:"17s"`
	Idle        int            `help:"At the end, how many organizations that do nothing are created." default:"10000"`
	Quiet       int            `help:"Organizations that are watched, each posting twice a second." default:"14"`
	Attack      bool           `help:"Read a job from standard input and attack: how this command starts its own attackers." hidden:""`
}

// Help is called by kong.
func (fairCommand) Help() string { return fairHelp }

// Validate is called by kong.
func (f *fairCommand) Validate() error {
	if f.Each <= 0 || f.Idle < 0 || f.Quiet < 1 {
		return errors.New("--each and --quiet must be more than 0, --idle at least 0")
	}
	return nil
}

// Run measures and prints a table.
func (f *fairCommand) Run(ctx context.Context, logger *slog.Logger) error {
	if f.Attack {
		return fairness.Attack(ctx, os.Stdin, os.Stdout)
	}
	weir, err := f.path()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := workplace("weir-fair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config := fairness.Config{
		Weir: weir, Attacker: []string{self, "fair", "--attack"}, Dir: dir, DatabaseURL: f.DatabaseURL.Reveal(),
		Attacks: f.Attacks, Each: f.Each, Idle: f.Idle, Quiet: f.Quiet, Logger: logger,
	}
	begun := time.Now()
	fmt.Fprintln(os.Stdout, "Measuring what quiet organizations notice:")
	results, err := fairness.Run(ctx, config, os.Stdout)
	if len(results) > 0 {
		fmt.Fprintf(os.Stdout, "Measured in %s.\n", time.Since(begun).Round(time.Second))
		if _, err := fairness.Write(os.Stdout, config, results); err != nil {
			return err
		}
	}
	return err
}
