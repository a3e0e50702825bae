package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/bench/internal/soak"
	"github.com/weirlog/weir/shared/httpapi"
)

const soakHelp = `All of Weir lives through a year by a clock of its own: eight organizations send logs every day, some entries late, some errors of a new
kind; two organizations change their tiers every second month, one up while the other goes down, and the retention of what they send follows;
one organization stops, one is deleted. Each has an owner who signs in every day after somebody has guessed at the password, and every month another
API key, a grant, an adjustment, an invitation, a colleague, and a webhook's deliveries again. For a month each come an organization that tries Weir,
one with which billing rehearses, and a project with a budget that refuses requests; then they are deleted. A producer leaves records that can't be
read, and half a request. Once a month everything is restarted. The retentions are shorter than the defaults, so that every bound is reached. The
table has a column for each month: rows and size of every table, size of every topic and file, memory. It fails where something still grows after the
third of the longest retentions, and where nothing has come into a table that should not stay empty.`

type soakCommand struct {
	DatabaseURL httpapi.Secret `help:"Empty Postgres database to use. Without it one is started." env:"WEIR_BENCH_DATABASE_URL"`
	Short       bool           `help:"Five months in steps of five days, as the tests do."`
}

// Help is called by kong.
func (soakCommand) Help() string { return soakHelp }

// Run lets the time pass and prints a table.
func (s *soakCommand) Run(ctx context.Context, logger *slog.Logger) error {
	dir, err := workplace("weir-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config := soak.Year()
	if s.Short {
		config = soak.Short()
	}
	config.Dir = dir
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})) // thousands of sign-ins fail on purpose
	url, stop, err := measure.Database(ctx, s.DatabaseURL.Reveal(), dir, logger)
	if err != nil {
		return err
	}
	config.DatabaseURL = url
	err = s.pass(ctx, config)
	return errors.Join(err, stop())
}

func (s *soakCommand) pass(ctx context.Context, config soak.Config) error {
	begun := time.Now()
	fmt.Fprintf(os.Stdout, "Letting %d days pass:\n", config.Days)
	report, err := soak.Run(ctx, config, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "They passed in %s.\n", time.Since(begun).Round(time.Second))
	if err := report.Write(os.Stdout); err != nil {
		return err
	}
	if grown := report.Grown(); len(grown) > 0 {
		return fmt.Errorf("what still grows: %s", strings.Join(grown, "; "))
	}
	if untouched := report.Untouched(); len(untouched) > 0 {
		return fmt.Errorf("whether they stay empty is not what was expected of %s: see deploy/bench/internal/soak", strings.Join(untouched, ", "))
	}
	fmt.Fprintf(os.Stdout, "Nothing has grown since day %d.\n", config.FlatFrom)
	return nil
}
