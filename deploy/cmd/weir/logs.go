package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
)

const logsHelp = `Prints the newest entries that match, the newest last:

  weir logs                               the last hour
  weir logs timeout level:error           a word and a level
  weir logs 'metadata.status:>=500' --since=24h
  weir logs --json 'user.id:42' | jq .message
  weir logs --follow level:error          what comes from now on
  weir logs -- -healthcheck               what begins with - stands behind --

ingest/docs/searching.md has the whole language. Without an address and a key it reads what ` + "`weir run`" + ` has started.`

type logsCommand struct {
	Query []string `arg:"" optional:"" help:"What the entries have to match."`

	Since   time.Duration `help:"How far to look back." default:"1h"`
	From    time.Time     `help:"Events from this time on, in RFC 3339, instead of --since." format:"2006-01-02T15:04:05Z07:00"`
	To      time.Time     `help:"Events before this time, in RFC 3339." format:"2006-01-02T15:04:05Z07:00"`
	Project string        `help:"Only this project, by its id."`
	Limit   int           `help:"How many entries at most." default:"100"`
	Follow  bool          `short:"f" help:"Print what is accepted from now on, as it comes."`
	JSON    bool          `name:"json" help:"Print the entries as they were sent, one on each line."`

	BaseURL string         `help:"Address of the API, such as https://weir.example.com/v1." env:"WEIR_BASE_URL"`
	APIKey  httpapi.Secret `name:"api-key" help:"An API key that may read." env:"WEIR_API_KEY"`
	CAFile  string         `name:"ca-file" help:"Authority of the address, if no public one." env:"WEIR_CA_FILE"`
	DataDir string         `help:"Data directory of a running weir; its dev.env has the address and a key." env:"WEIR_DATA_DIR" default:".weir"`
}

// Help is called by kong.
func (logsCommand) Help() string { return logsHelp }

// Validate is called by kong.
func (l *logsCommand) Validate() error {
	if l.Limit < 1 || l.Since <= 0 {
		return errors.New("--limit and --since must be more than 0")
	}
	if l.Follow && !(l.From.IsZero() && l.To.IsZero()) {
		return errors.New("--follow prints what comes from now on: leave out --from and --to")
	}
	return nil
}

// Run prints entries.
func (l *logsCommand) Run(ctx context.Context) error {
	if l.BaseURL == "" {
		env, err := allinone.ReadDevEnv(filepath.Join(l.DataDir, allinone.EnvFile))
		if err != nil {
			return err
		}
		if env.BaseURL == "" || env.APIKey == "" {
			return fmt.Errorf("there is nothing to read in %q: start `weir run` (make run) first, or name an address with WEIR_BASE_URL and a key with WEIR_API_KEY",
				l.DataDir)
		}
		l.BaseURL, l.CAFile, l.APIKey = env.BaseURL, env.CAFile, httpapi.Secret(env.APIKey)
	}
	api, err := client.New(l.BaseURL, l.CAFile, 1)
	if err != nil {
		return err
	}
	defer api.Close()
	if l.Follow {
		return l.follow(ctx, api, os.Stdout, os.Stderr)
	}
	return l.print(ctx, api, os.Stdout, time.Now())
}

// errEnough ends a search with enough entries.
var errEnough = errors.New("enough")

func (l *logsCommand) print(ctx context.Context, api *client.Client, out io.Writer, now time.Time) error {
	query := client.LogsQuery{Project: l.Project, Query: strings.Join(l.Query, " "), From: l.From, To: l.To, Limit: min(l.Limit, 1000)}
	if query.From.IsZero() {
		query.From = now.Add(-l.Since)
	}
	var newest []client.StoredEntry
	err := api.EachLog(ctx, l.APIKey.Reveal(), query, func(entry client.StoredEntry) error {
		if newest = append(newest, entry); len(newest) == l.Limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	lines := bufio.NewWriter(out)
	for _, entry := range slices.Backward(newest) {
		if err := l.printOne(lines, entry); err != nil {
			return err
		}
	}
	return lines.Flush()
}

func (l *logsCommand) printOne(out io.Writer, entry client.StoredEntry) (err error) {
	line := string(entry.Entry)
	if !l.JSON {
		if line, err = lineOf(entry); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, line)
	return err
}

// Limits of the pause before a tail is opened again.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// follow prints what comes until ctx ends. It comes back when a tail ends,
// unless it is refused for good.
func (l *logsCommand) follow(ctx context.Context, api *client.Client, out, said io.Writer) error {
	query := client.LogsQuery{Project: l.Project, Query: strings.Join(l.Query, " ")}
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		var failed error // to print
		err := api.Tail(ctx, l.APIKey.Reveal(), query, func(event client.Event) error {
			pause = firstPause
			if event.Entry != nil {
				failed = l.printOne(out, *event.Entry)
			} else if event.Skipped > 0 {
				fmt.Fprintf(said, "%d entries are not shown: %s\n", event.Skipped, skippedBy[event.Reason])
			}
			return failed
		})
		problem := (*client.Problem)(nil)
		switch isProblem := errors.As(err, &problem); {
		case failed != nil, isProblem && !problem.Temporary():
			return err
		case err != nil && ctx.Err() == nil:
			fmt.Fprintf(said, "%v; entries may be missing, and it is tried again\n", err)
		}
		wait := pause/2 + rand.N(pause) // at random, so that clients do not return together
		if problem != nil {
			wait = max(wait, problem.RetryAfter)
		}
		lifecycle.Pause(ctx, wait)
	}
	return nil
}

// skippedBy says why entries are not shown.
var skippedBy = map[string]string{ // bounded by the reasons of the API
	"slow":  "they come faster than they are printed. A narrower query helps.",
	"share": "the organization's tails had their share of time. Fewer terms, or fewer tails, help.",
}

// lineOf is an entry for a person: time, level, environment, message and error.
func lineOf(stored client.StoredEntry) (string, error) {
	var entry struct {
		Timestamp time.Time
		Level     string
		Message   string
		Error     *struct{ Type, Message string }
	}
	if err := json.Unmarshal(stored.Entry, &entry); err != nil {
		return "", fmt.Errorf("cannot read entry %s: %w", stored.ID, err)
	}
	at := entry.Timestamp.Local().Format("2006-01-02 15:04:05.000")
	line := fmt.Sprintf("%s %-5s %s  %s", at, strings.ToUpper(entry.Level), stored.Environment, entry.Message)
	if entry.Error != nil {
		line += "  " + strings.TrimSuffix(entry.Error.Type+": "+entry.Error.Message, ": ")
	}
	return printable(line), nil
}

// printable replaces what a terminal would obey or hide.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, line)
}
