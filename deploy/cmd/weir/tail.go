package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/terminal"
	"github.com/weirlog/weir/shared/lifecycle"
)

const tailHelp = `Prints entries as they are accepted, until it is interrupted:

  weir tail                                all of the organization
  weir tail level:error service:checkout   those that match, as in weir logs
  weir tail --json | jq .message`

type tailCommand struct {
	Query   []string `arg:"" optional:"" help:"What the entries have to match."`
	Project string   `help:"Only this project, by its id."`
	JSON    bool     `name:"json" help:"Print the entries as they were sent, one on each line."`

	reader
}

// Help is called by kong.
func (tailCommand) Help() string { return tailHelp }

// Run prints entries until ctx ends.
func (l *tailCommand) Run(ctx context.Context) error {
	api, _, err := l.open()
	if err != nil {
		return err
	}
	defer api.Close()
	return l.follow(ctx, api, terminal.Of(os.Stdout), os.Stderr)
}

// Limits of the pause before a tail is opened again.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

// follow prints what comes until ctx ends. It comes back when a tail ends,
// unless it is refused for good.
func (l *tailCommand) follow(ctx context.Context, api *client.Client, screen terminal.Screen, said io.Writer) error {
	query := client.LogsQuery{Project: l.Project, Query: strings.Join(l.Query, " ")}
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		var failed error // to print
		err := api.Tail(ctx, l.APIKey.Reveal(), query, func(event client.Event) error {
			pause = firstPause
			if event.Entry != nil {
				failed = printEntry(screen, *event.Entry, l.JSON)
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
