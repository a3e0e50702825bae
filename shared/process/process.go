package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Main reads a configuration of type C (kong's struct tags: help, env, default) and runs the
// service until it ends or SIGINT or SIGTERM comes; a second signal ends it at once. A failure is
// one line on standard error and exit status 1; --help shows every setting with its variable.
func Main[C any](name, description string, run func(ctx context.Context, config C, logger *slog.Logger) error) {
	var options options[C]
	kong.Parse(&options, kong.Name(name), kong.Description(description), kong.UsageOnError())
	options.Memory.Apply()
	ctx, logger := begin(name, options.Logging)
	end(name, run(ctx, options.Given, logger))
}

// Commands is Main for a program with several commands. C has a field for each (kong's struct tags:
// cmd, help), with a method Run(ctx context.Context, logger *slog.Logger) error. A mistake in its
// arguments is one line on standard error; standard output is for results.
func Commands[C any](name, description string) {
	var options options[C]
	command := kong.Parse(&options, kong.Name(name), kong.Description(description))
	options.Memory.Apply()
	ctx, logger := begin(name, options.Logging)
	command.BindTo(ctx, (*context.Context)(nil))
	end(name, command.Run(logger))
}

type options[C any] struct {
	Given   C       `embed:""`
	Logging logging `embed:""`
	Memory  Memory  `embed:""`
}

type logging struct {
	LogLevel string `help:"What to log: debug, info, warn or error." env:"WEIR_LOG_LEVEL" default:"info" enum:"debug,info,warn,error"`
	LogJSON  bool   `name:"log-json" help:"Log JSON lines instead of text." env:"WEIR_LOG_JSON"`
}

// begin returns a context that ends with the first signal, and the log.
func begin(name string, logging logging) (context.Context, *slog.Logger) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, newLogger(logging.LogLevel, logging.LogJSON).With(slog.String("service", name))
}

func end(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func newLogger(level string, asJSON bool) *slog.Logger {
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		parsed = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: parsed}
	if asJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
