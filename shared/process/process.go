package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
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

// version is set by the linker in images; elsewhere the commit replaces it.
var version string

// unversioned is the version of a program compiled outside of a repository.
const unversioned = "unversioned"

// Version is the command version of every program.
type Version struct{}

// Run is called by kong.
func (Version) Run() error {
	return writeVersion(os.Stdout, version, buildSettings())
}

func writeVersion(w io.Writer, version string, settings map[string]string) error {
	_, err := fmt.Fprintf(w, "%s (%s, %s/%s)\n", named(version, settings), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// named returns the version, or else the commit, with a mark
// for uncommitted changes.
func named(version string, settings map[string]string) string {
	commit := settings["vcs.revision"]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += "-dirty"
	}
	return cmp.Or(version, commit, unversioned)
}

// buildSettings returns what the compiler stored in this program.
func buildSettings() map[string]string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	return settings
}

// Built returns this program's version, or else its commit.
func Built() string { return named(version, buildSettings()) }

// Profile writes a CPU profile of the process to path until stop
// is called; with no path it does nothing.
func Profile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("cannot write a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
