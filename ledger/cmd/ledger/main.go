// Command ledger runs Weir's quota ledger, or verifies its books.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/ledger/app"
)

type commands struct {
	Log string `help:"Format of the log on stderr." enum:"text,json" default:"json" env:"WEIR_LOG"`

	Serve  serve  `cmd:"" default:"withargs" help:"Charge accepted logs, publish account states, answer for balances."`
	Verify verify `cmd:"" help:"Compare every balance with its postings, and every posting with the log. Exit 1 where they differ."`
}

type serve struct{ app.Config }

// Run serves until ctx ends.
func (s *serve) Run(ctx context.Context, logger *slog.Logger) error {
	ledger, err := app.New(ctx, s.Config, logger)
	if err != nil {
		return err
	}
	return ledger.Run(ctx)
}

type verify struct{ app.Config }

// Run prints what does not hold.
func (v *verify) Run(ctx context.Context) error {
	violations, err := app.Verify(ctx, v.Config)
	if err != nil {
		return err
	}
	for _, violation := range violations {
		fmt.Printf("%s: %s\n", violation.Invariant, violation.Detail)
	}
	if len(violations) > 0 {
		return fmt.Errorf("%d invariants do not hold", len(violations))
	}
	fmt.Println("every invariant holds")
	return nil
}

func main() {
	var chosen commands
	parsed := kong.Parse(&chosen, kong.Name("ledger"),
		kong.Description("The quota ledger of Weir: what each organization may send, what it has sent, and the postings that prove it. "+
			"It needs Kafka and Postgres; every setting is a flag or an environment variable."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := newLogger(chosen.Log)
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(logger); err != nil {
		stop()
		logger.Error("ledger failed", slog.String("error", err.Error()))
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func newLogger(format string) *slog.Logger {
	if format == "text" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, nil))
}
