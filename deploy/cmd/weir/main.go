package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/process"
)

const description = `Weir takes batches of log entries over HTTPS, never loses one that it acknowledged, charges each byte exactly once,
and groups the errors.

  weir run     starts everything on https://localhost:8443 and prints what to do next
  weir demo    sends a minute of traffic to it, in a second terminal
  weir send    sends lines of a program or of files; ingest/client has libraries
  weir logs    searches what was sent; weir errors and weir usage show what became of it
  weir doctor  says what is wrong with it, or with an installation, and what to do

Every flag can be given in the environment; weir <command> --help shows the names.`

type commands struct {
	LogLevel string `help:"What to log to standard error: debug, info, warn or error." env:"WEIR_LOG_LEVEL" default:"warn" enum:"debug,info,warn,error"`
	LogJSON  bool   `name:"log-json" help:"Log JSON lines instead of text." env:"WEIR_LOG_JSON"`

	Run      runCommand      `cmd:"" help:"Run all of Weir in this process, with a demo organization."`
	Demo     demoCommand     `cmd:"" help:"Send a minute of realistic traffic through the public API."`
	Send     sendCommand     `cmd:"" help:"Send lines of files or standard input as log entries."`
	Logs     logsCommand     `cmd:"" help:"Search logs in a terminal."`
	Tail     tailCommand     `cmd:"" help:"Print logs as they are accepted."`
	Searches searchesCommand `cmd:"" help:"List the saved searches that everybody sees."`
	Rejected rejectedCommand `cmd:"" help:"List what was rejected of a project in the last 24 hours, and why."`
	Errors   errorsCommand   `cmd:"" help:"List the groups of errors, or show one."`
	Usage    usageCommand    `cmd:"" help:"Show what was used of the quota."`
	MCP      mcpCommand      `cmd:"" name:"mcp" help:"Let an assistant read logs, errors and usage, by the Model Context Protocol over standard input and output."`
	Profile  profileCommand  `cmd:"" help:"Keep how installations are reached, by name."`
	Parked   parkedCommand   `cmd:"" help:"See records that could not be applied, and have them applied or discarded."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the databases up to date before services start, and give each service's role what it needs."`

	Sourcemaps sourcemapsCommand `cmd:"" help:"Upload, list and delete source maps, which show errors of minified scripts as they were written."`

	Topics topicsCommand `cmd:"" help:"Create the topics on a Kafka cluster, before services run as processes of their own."`
	ACLs   aclsCommand   `cmd:"" name:"acls" help:"Print what each program may do at the brokers, as commands of Apache Kafka's kafka-acls.sh, or give them these rights."`

	Size sizeCommand `cmd:"" help:"Estimate how large an installation has to be, and what it costs."`

	Doctor doctorCommand `cmd:"" help:"Look at an installation, and say what is wrong and what to do about it."`

	History historyCommand `cmd:"" help:"Move entries between Postgres and ClickHouse, or print ClickHouse's schema."`

	Backup  backupCommands `cmd:"" help:"Copy the databases of an installation while it runs, continuously or once."`
	Recover recoverCommand `cmd:"" help:"Bring a PostgreSQL server back from a continuous backup, as it was at a time."`
	Restore restoreCommand `cmd:"" help:"Bring databases back from a copy of weir backup."`
	Resume  resumeCommand  `cmd:"" help:"Let an installation continue after a restore, or with new brokers."`

	Provision provisionCommand `cmd:"" help:"Make the secrets of an installation, a file for each."`

	Program programCommand `cmd:"" hidden:"" help:"Copy this program to a directory."`

	Docs docsCommand `cmd:"" hidden:"" help:"Write the pages of deploy/docs that are made from the source."`

	Completion completionCommand `cmd:"" help:"Print what completes commands in a shell."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"List what the last word may be."`

	Version process.Version `cmd:"" help:"Print which version this is."`
}

func main() {
	var chosen commands
	parsed := kong.Parse(&chosen, kong.Name("weir"), kong.Description(description), kong.ShortUsageOnError(), process.SecretFiles(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(chosen.logger()); err != nil {
		if status, printed := errors.AsType[exitStatus](err); printed {
			os.Exit(int(status))
		}
		fmt.Fprintln(os.Stderr, "weir:", terminal.Line(oneLine(err)))
		os.Exit(1)
	}
}

// oneLine writes several errors as one line. Equal errors of several
// modules, such as of a shared setting, are written once.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	return strings.Join(slices.Compact(lines), "; ")
}

func (c *commands) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelWarn
	}
	options := &slog.HandlerOptions{Level: level}
	if c.LogJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
