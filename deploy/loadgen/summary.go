package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// Limits of the wait until the views show all entries.
const (
	viewTimeout = 10 * time.Second
	viewPoll    = 50 * time.Millisecond
)

// groupsShown is how many groups the summary lists.
const groupsShown = 20

// summarise waits until the balance shows all entries, then
// reports the results.
func summarise(ctx context.Context, api *client.Client, config Config, before client.Balance, t *tally, out io.Writer) error {
	after, err := awaitBalance(ctx, api, config, before.Accepted()+t.bytes)
	if err != nil {
		return err
	}
	groups, err := api.ErrorGroups(ctx, config.APIKey, config.Project)
	if err != nil {
		return fmt.Errorf("cannot list the error groups: %w", err)
	}
	fmt.Fprintf(out, "\nSent %d posts with %d entries (%d errors); %d bytes were charged.\n", t.posts, t.entries, t.failures, t.bytes)
	if t.skipped > 0 {
		fmt.Fprintf(out, "%d posts were skipped, because %d others were still open.\n", t.skipped, concurrent)
	}
	fmt.Fprintf(out, "Balance: %d bytes accepted before, %d now, %s of %s remain (%s until %s).\n", before.Accepted(), after.Accepted(),
		size(after.Remaining), size(after.Granted), after.State, after.Period.End.Format(time.DateOnly))
	if missing := before.Accepted() + t.bytes - after.Accepted(); missing > 0 {
		fmt.Fprintf(out, "The balance does not show %d bytes yet.\n", missing)
	}
	showGroups(groups, out)
	return nil
}

func awaitBalance(ctx context.Context, api *client.Client, config Config, accepted int64) (client.Balance, error) {
	for deadline := time.Now().Add(viewTimeout); ; {
		balance, err := api.Balance(ctx, config.ServiceToken, config.Organization)
		if err != nil {
			return balance, fmt.Errorf("cannot read the balance: %w", err)
		}
		if balance.Accepted() >= accepted || time.Now().After(deadline) {
			return balance, nil
		}
		time.Sleep(viewPoll)
	}
}

func showGroups(groups []client.ErrorGroup, out io.Writer) {
	slices.SortFunc(groups, func(a, b client.ErrorGroup) int { return cmp.Compare(b.Count, a.Count) })
	fmt.Fprintf(out, "Error groups of the project: %d\n", len(groups))
	for _, group := range groups[:min(len(groups), groupsShown)] {
		fmt.Fprintf(out, "  %6d  %-60.60s %.60s\n", group.Count, group.Title, group.Culprit)
	}
	if more := len(groups) - groupsShown; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}
