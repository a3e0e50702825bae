package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/ledger"
	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

const ledgerHelp = `The ledger alone, in this process: records in the broker become committed books. Beside its rates stands what COPY alone reaches
with the same PostgreSQL in the same run; beside its times stand the goals.`

type ledgerCommand struct {
	Brokers     []string       `help:"Kafka to measure with, host:port; its topics of Weir are deleted. Without it the embedded broker is started." env:"WEIR_BENCH_BROKERS"`
	DatabaseURL httpapi.Secret `help:"Postgres database to measure with; its schema ledger is dropped. Without it one is started." env:"WEIR_BENCH_DATABASE_URL"`
	Events      int            `help:"Records for each measurement of a rate." default:"400000"`
	Rebuilt     int            `help:"Records that the rebuild reads, and a round of checks compares." default:"1000000"`
	Paced       time.Duration  `help:"How long to publish at half of the rate." default:"15s"`
	Only        []string       `help:"Measure these alone: ${ledger_parts}."`
	Profile     string         `help:"File for a profile of this process while it charges 1,000 organizations, for go tool pprof." type:"path"`
}

// memory gives this process's garbage collector the room of a ledger's,
// and that for the embedded broker's log.
const memory = 8 << 30

// Help is called by kong.
func (ledgerCommand) Help() string { return ledgerHelp }

// Validate is called by kong.
func (c *ledgerCommand) Validate() error {
	if min(c.Events, c.Rebuilt) < 1000 || c.Paced < time.Second {
		return errors.New("at least 1000 records and a second are needed to measure anything")
	}
	return nil
}

// Run measures and prints a table.
func (c *ledgerCommand) Run(ctx context.Context, logger *slog.Logger) error {
	process.Memory{MemoryLimit: memory}.Apply()
	dir, err := workplace("weir-bench-ledger-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	url, stop, err := measure.CountingDatabase(ctx, c.DatabaseURL.Reveal(), dir, logger)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "Measuring the ledger:")
	result, err := ledger.Run(ctx, ledger.Config{
		Dir: dir, DatabaseURL: url, Brokers: c.Brokers, Events: c.Events, Rebuilt: c.Rebuilt, Paced: c.Paced, Only: c.Only, Profile: c.Profile, Logger: logger,
	}, os.Stdout)
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	return result.Write(os.Stdout)
}
