package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/bench/internal/fairness"
	"github.com/weirlog/weir/deploy/bench/internal/ledger"
	"github.com/weirlog/weir/shared/process"
)

const description = "Measures Weir on this machine. It starts what it measures, and removes it at the end."

type commands struct {
	Throughput throughputCommand `cmd:"" help:"Measure throughput, latency, CPU and memory."`
	Fair       fairCommand       `cmd:"" help:"Measure what quiet organizations notice of noisy ones."`
	Ledger     ledgerCommand     `cmd:"" help:"Measure the ledger alone, beside what PostgreSQL takes at most."`
	Soak       soakCommand       `cmd:"" help:"Run a year in minutes, and measure what has grown."`
}

func main() {
	parsed := kong.Parse(new(commands), kong.Name("bench"), kong.Description(description), kong.ShortUsageOnError(), process.SecretFiles(),
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

// subject is the program that is measured.
type subject struct {
	Weir string `help:"The program weir that is measured. Without it, the one beside this program." type:"existingfile"`
}

// path returns the path of weir.
func (s subject) path() (string, error) {
	if s.Weir != "" {
		return s.Weir, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	weir := filepath.Join(filepath.Dir(self), "weir")
	if _, err := os.Stat(weir); err != nil {
		return "", fmt.Errorf("there is no weir to measure: name it with --weir: %w", err)
	}
	return weir, nil
}

// workplace makes an empty directory for the files of a measurement.
func workplace(name string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", name); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // PostgreSQL may run as another user
}
