package process

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
)

// Main reads a configuration of type C (kong's struct tags: help, env,
// default) and runs the service until it ends or SIGINT or SIGTERM comes;
// a second signal ends it at once. A failure is one line on standard
// error and exit status 1; --help shows every setting with its variable.
// The commands version and ready need no required setting of C.
func Main[C any](name, description string, run func(ctx context.Context, config C, logger *slog.Logger) error) {
	if len(os.Args) > 1 && isCommon(os.Args[1]) {
		Commands[struct{}](name, description)
		return
	}
	start(name, description+commonHelp(called()), run)
}

// Once is Main for a program that serves no requests and ends by itself: there
// is no command ready.
func Once[C any](name, description string, run func(ctx context.Context, config C, logger *slog.Logger) error) {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		end(name, Version{}.Run())
		return
	}
	start(name, description+fmt.Sprintf("\n\n%s version prints which version this is.", called()), run)
}

// start parses the configuration, and runs what Main and Once are given.
func start[C any](name, help string, run func(ctx context.Context, config C, logger *slog.Logger) error) {
	var options options[C]
	kong.Parse(&options, kong.Name(called()), kong.Description(help), kong.ShortUsageOnError(), SecretFiles())
	options.Memory.Apply()
	ctx, logger := begin(name, options.Logging)
	end(name, run(ctx, options.Given, logger))
}

// Commands is Main for a program with several commands. C has a field for
// each (kong's struct tags: cmd, help), with a method Run(ctx
// context.Context, logger *slog.Logger) error. A mistake in the arguments
// is one line on standard error; standard output is for results.
func Commands[C any](name, description string) {
	var options struct {
		options[C]
		commonCommands
	}
	command := kong.Parse(&options, kong.Name(called()), kong.Description(description), SecretFiles())
	options.Memory.Apply()
	ctx, logger := begin(name, options.Logging)
	command.BindTo(ctx, (*context.Context)(nil))
	end(name, command.Run(logger))
}

// commonCommands are those of every service.
type commonCommands struct {
	Ready   ready   `cmd:"" help:"Ask the process that listens at WEIR_LISTEN on this machine whether it can serve: exit status 1 where it can't."`
	Version Version `cmd:"" help:"Print which version this is."`
}

// called returns the program's file name, which may differ from its
// name in logs.
func called() string { return filepath.Base(os.Args[0]) }

func isCommon(command string) bool { return command == "ready" || command == "version" }

func commonHelp(program string) string {
	return fmt.Sprintf("\n\n%[1]s version prints which version this is; %[1]s ready asks the one that serves here whether it can.", program)
}

// Options returns what Main parses for a configuration, to list its settings.
func Options[C any]() any { return new(options[C]) }

type options[C any] struct {
	Given   C       `embed:""`
	Logging logging `embed:""`
	Memory  Memory  `embed:""`
}

type logging struct {
	LogLevel string `help:"What to log: debug, info, warn or error." env:"WEIR_LOG_LEVEL" default:"info" enum:"debug,info,warn,error"`
	LogJSON  bool   `name:"log-json" help:"Log JSON lines instead of text." env:"WEIR_LOG_JSON"`
}

// begin returns a context that ends with the first signal, and the logger.
func begin(name string, logging logging) (context.Context, *slog.Logger) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, newLogger(logging.LogLevel, logging.LogJSON).With(slog.String("service", name))
}

func end(name string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, inOneLine(name, err))
		os.Exit(1)
	}
}

// inOneLine returns an error as one line, for collectors of lines:
// drivers join their attempts by line breaks, and settings their errors.
func inOneLine(name string, err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return name + ": " + strings.Join(lines, " ")
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
