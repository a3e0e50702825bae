package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench"
	"github.com/weirlog/weir/shared/httpapi"
)

type benchCommand struct {
	Broker        string         `help:"Which brokers to measure with: embedded, kafka or both; sync: the embedded one with fsync and without." enum:"embedded,kafka,both,sync" default:"both"`
	Brokers       []string       `help:"Kafka to measure with, host:port. Without it an Apache Kafka is started here, where Java and Maven are." env:"WEIR_BENCH_BROKERS"`
	DatabaseURL   httpapi.Secret `help:"Empty Postgres database to measure with. Without it one is started for each run." env:"WEIR_BENCH_DATABASE_URL"`
	Organizations int            `help:"Organizations that the load is spread over; each may make 1,800 requests a minute." default:"24"`
	Senders       int            `help:"How many post at the same time." default:"16"`
	WarmUp        time.Duration  `help:"How long to warm up." default:"5s"`
	Saturated     time.Duration  `help:"How long to post as fast as answers come." default:"15s"`
	Paced         time.Duration  `help:"How long to post at a fixed rate." default:"20s"`
	PacedRate     int            `help:"The fixed rate, entries a second; 0: half of what was accepted before." default:"25000"`
	Probes        int            `help:"Organizations whose views are looked at meanwhile." default:"3"`
	Profiles      string         `help:"Directory for CPU profiles of the measured process." type:"existingdir"`
}

// Validate is called by kong.
func (b *benchCommand) Validate() error {
	if b.Organizations < 1 || b.Senders < 1 || b.Probes < 1 || b.PacedRate < 0 || min(b.WarmUp, b.Saturated, b.Paced) <= 0 {
		return errors.New("numbers and times must be more than 0")
	}
	if (b.Broker == "both" || b.Broker == "sync") && b.DatabaseURL != "" {
		return errors.New("each run needs a database of its own: with --database-url choose --broker=embedded or --broker=kafka")
	}
	return nil
}

// Run measures and prints a table.
func (b *benchCommand) Run(ctx context.Context, logger *slog.Logger) error {
	program, dir, err := workplace("weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config := bench.Config{
		Program: program, Dir: dir, DatabaseURL: b.DatabaseURL.Reveal(), Brokers: b.Brokers,
		Embedded: b.Broker != "kafka", Unsynced: b.Broker == "sync", Kafka: b.Broker == "kafka" || b.Broker == "both",
		Organizations: b.Organizations, Senders: b.Senders, WarmUp: b.WarmUp, Saturated: b.Saturated,
		Paced: b.Paced, PacedRate: b.PacedRate, Probes: b.Probes, Profiles: b.Profiles, Logger: logger,
	}
	begun := time.Now()
	results, err := bench.Run(ctx, config, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "Measured in %s.\n", time.Since(begun).Round(time.Second))
	return bench.Write(os.Stdout, config, results)
}

// workplace returns this program's path, to start a separate process,
// and an empty directory for its files.
func workplace(name string) (program, dir string, err error) {
	if program, err = os.Executable(); err != nil {
		return "", "", err
	}
	if dir, err = os.MkdirTemp("", name); err != nil {
		return "", "", err
	}
	return program, dir, os.Chmod(dir, 0o755) // PostgreSQL may run as another user
}
