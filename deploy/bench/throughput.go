package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/throughput"
	"github.com/weirlog/weir/shared/httpapi"
)

type throughputCommand struct {
	subject `embed:""`

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
func (c *throughputCommand) Validate() error {
	if c.Organizations < 1 || c.Senders < 1 || c.Probes < 1 || c.PacedRate < 0 || min(c.WarmUp, c.Saturated, c.Paced) <= 0 {
		return errors.New("numbers and times must be more than 0")
	}
	if (c.Broker == "both" || c.Broker == "sync") && c.DatabaseURL != "" {
		return errors.New("each run needs a database of its own: with --database-url choose --broker=embedded or --broker=kafka")
	}
	return nil
}

// Run measures and prints a table.
func (c *throughputCommand) Run(ctx context.Context, logger *slog.Logger) error {
	weir, err := c.path()
	if err != nil {
		return err
	}
	dir, err := workplace("weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config := throughput.Config{
		Weir: weir, Dir: dir, DatabaseURL: c.DatabaseURL.Reveal(), Brokers: c.Brokers,
		Embedded: c.Broker != "kafka", Unsynced: c.Broker == "sync", Kafka: c.Broker == "kafka" || c.Broker == "both",
		Organizations: c.Organizations, Senders: c.Senders, WarmUp: c.WarmUp, Saturated: c.Saturated,
		Paced: c.Paced, PacedRate: c.PacedRate, Probes: c.Probes, Profiles: c.Profiles, Logger: logger,
	}
	begun := time.Now()
	results, err := throughput.Run(ctx, config, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "Measured in %s.\n", time.Since(begun).Round(time.Second))
	return throughput.Write(os.Stdout, config, results)
}
