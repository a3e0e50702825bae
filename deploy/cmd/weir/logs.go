package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
)

const logsHelp = `Prints the newest entries that match, the newest last:

  weir logs                               the last hour
  weir logs timeout level:error           a word and a level
  weir logs 'metadata.status:>=500' --since=24h
  weir logs level:error --count-by=service       how many of which service
  weir logs --patterns                           what the messages have in common
  weir logs --patterns --new-since=1h            what the day before does not have
  weir logs --json 'user.id:42' | jq .message
  weir logs --saved='Checkout fails'      what a saved search finds
  weir logs -- -healthcheck               what begins with - stands behind --

` + "`weir tail`" + ` prints what comes from now on. ingest/docs/searching.md has the whole language.
Without an address or a profile it reads what ` + "`weir run`" + ` has started.`

type logsCommand struct {
	Query []string `arg:"" optional:"" help:"What the entries have to match."`

	Since    time.Duration `help:"How far to look back." default:"1h"`
	From     time.Time     `help:"Events from this time on, in RFC 3339, instead of --since." format:"2006-01-02T15:04:05Z07:00"`
	To       time.Time     `help:"Events before this time, in RFC 3339." format:"2006-01-02T15:04:05Z07:00"`
	Project  string        `help:"Only this project, by its id."`
	Limit    int           `help:"How many entries at most." default:"100"`
	JSON     bool          `name:"json" help:"Print the entries as they were sent, one on each line."`
	Patterns bool          `help:"Print the patterns of messages instead of entries, the most frequent first."`
	NewSince time.Duration `help:"Only patterns that are new in this time: the day before, or --from until then, has none like them."`
	Saved    string        `help:"Search as the saved search of this name does, which everybody sees, in its time; with the query as well."`
	CountBy  []string      `help:"Count by the values of this field, such as level or service, instead of printing entries. For several, repeat it." sep:"none"`

	reader
}

// Help is called by kong.
func (logsCommand) Help() string { return logsHelp }

// Validate is called by kong.
func (l *logsCommand) Validate() error {
	if l.Limit < 1 || l.Since <= 0 {
		return errors.New("--limit and --since must be more than 0")
	}
	if l.NewSince < 0 || l.NewSince > 0 && !l.Patterns || l.Patterns && len(l.CountBy) > 0 {
		return errors.New("--new-since is a time for --patterns, which goes without --count-by")
	}
	return nil
}

// Run prints entries.
func (l *logsCommand) Run(ctx context.Context) error {
	api, _, err := l.open()
	if err != nil {
		return err
	}
	defer api.Close()
	if l.Saved != "" {
		if err := l.useSaved(ctx, api); err != nil {
			return err
		}
	}
	return l.print(ctx, api, os.Stdout, time.Now())
}

// errEnough ends a search with enough entries.
var errEnough = errors.New("enough")

func (l *logsCommand) print(ctx context.Context, api *client.Client, out io.Writer, now time.Time) error {
	query := client.LogsQuery{Project: l.Project, Query: strings.Join(l.Query, " "), From: l.From, To: l.To, Limit: min(l.Limit, 1000)}
	if l.Patterns {
		return l.patterns(ctx, api, terminal.Of(out), now)
	}
	if query.From.IsZero() {
		query.From = now.Add(-l.Since)
	}
	if len(l.CountBy) > 0 {
		return l.count(ctx, api, terminal.Of(out), query.From)
	}
	return printNewest(out, l.Limit, l.JSON, func(visit func(client.StoredEntry) error) error {
		return api.EachLog(ctx, l.APIKey.Reveal(), query, visit)
	})
}

// printNewest prints the first entries of each, at most limit, the last of them first.
func printNewest(out io.Writer, limit int, asJSON bool, each func(visit func(client.StoredEntry) error) error) error {
	var newest []client.StoredEntry
	err := each(func(entry client.StoredEntry) error {
		if newest = append(newest, entry); len(newest) == limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	lines := bufio.NewWriter(out)
	screen := terminal.Of(out)
	screen.Writer = lines
	for _, entry := range slices.Backward(newest) {
		if err := printEntry(screen, entry, asJSON); err != nil {
			return err
		}
	}
	return lines.Flush()
}

// printEntry prints an entry as it was sent, or for a person.
func printEntry(screen terminal.Screen, entry client.StoredEntry, asJSON bool) error {
	if asJSON {
		return screen.JSON(entry.Entry)
	}
	line, err := lineOf(screen, entry)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(screen, line)
	return err
}

// lineOf is an entry for a person: time, level, environment, message and error.
func lineOf(screen terminal.Screen, stored client.StoredEntry) (string, error) {
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
	line := fmt.Sprintf(" %s  %s", stored.Environment, entry.Message)
	if entry.Error != nil {
		line += "  " + strings.TrimSuffix(entry.Error.Type+": "+entry.Error.Message, ": ")
	}
	level := screen.Level(entry.Level, fmt.Sprintf("%-5s", terminal.Line(strings.ToUpper(entry.Level))))
	return at + " " + level + terminal.Line(line), nil
}
