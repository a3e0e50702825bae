package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/bench/internal/fairness"
	"github.com/weirlog/weir/deploy/bench/internal/front"
	"github.com/weirlog/weir/deploy/bench/internal/ledger"
	"github.com/weirlog/weir/deploy/bench/internal/naive"
	"github.com/weirlog/weir/deploy/bench/internal/soak"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/bench/internal/throughput"
	"github.com/weirlog/weir/ingest/benchmark"
)

const description = "Measures Weir on this machine. It starts what it measures, and removes it at the end."

type commands struct {
	Throughput throughput.Command `cmd:"" help:"Measure throughput, latency, CPU and memory."`
	Front      front.Command      `cmd:"" help:"Measure what requests cost at the front door, beside a naive server and a Collector."`
	Fair       fairness.Command   `cmd:"" help:"Measure what quiet organizations notice of noisy ones."`
	Ledger     ledger.Command     `cmd:"" help:"Measure the ledger alone, beside what PostgreSQL takes at most."`
	Store      store              `cmd:"" help:"Measure the log store alone, beside VictoriaLogs."`
	Soak       soak.Command       `cmd:"" help:"Run a year in minutes, and measure what has grown."`
	Naive      naive.Command      `cmd:"" hidden:"" help:"Serve what throughput compares with."`
	Door       front.Door         `cmd:"" hidden:"" help:"Serve what front measures."`
	Attack     fairness.Attacker  `cmd:"" hidden:"" help:"Attack what fair measures."`
}

// store has a database for each store of Weir.
type store struct{ benchmark.Command }

func (s *store) Run(ctx context.Context, logger *slog.Logger) error {
	return subject.In(ctx, logger, func(dir, blocks string) error {
		return subject.In(ctx, logger, func(_, moving string) error { return s.Measure(ctx, os.Stdout, dir, blocks, moving) })
	})
}

func main() {
	parsed := kong.Parse(new(commands), kong.Name("bench"), kong.Description(description), kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"attacks": strings.Join(fairness.Attacks(), ", "), "ledger_parts": strings.Join(ledger.Parts(), ", ")})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
