package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/client"
)

// Config says what to send, and where.
type Config struct {
	APIKey       string
	ServiceToken string // billing:read
	Organization string
	Project      string
	Duration     time.Duration
	PerMinute    int           // posts a minute; the tier Scale admits 1,800
	Refresh      time.Duration // interval of progress
	Overwrite    bool          // progress stays on one line of a terminal
	Seed         uint64
}

// concurrent limits the posts in flight: it is enough that a waiting
// one delays no other.
const concurrent = 16

// A run counts sent posts.
type run struct {
	Config
	api   *client.Client
	out   io.Writer
	begun time.Time

	mu       sync.Mutex
	posts    int
	skipped  int // posts left out because too many were in flight
	entries  int
	failures int // entries with an error
	bytes    int64
	took     []time.Duration
}

// Run sends traffic for the configured time, and writes progress, and
// at the end the balance and the groups, to out. It returns early,
// without an error, when ctx ends; accepted posts stay accepted.
func Run(ctx context.Context, api *client.Client, config Config, out io.Writer) error {
	r := &run{Config: config, api: api, out: out, begun: time.Now()}
	before, err := r.balance(ctx)
	if err != nil {
		return err
	}
	if err := r.send(ctx); err != nil {
		return err
	}
	return r.summarise(context.WithoutCancel(ctx), before)
}

func (r *run) balance(ctx context.Context) (client.Balance, error) {
	balance, err := r.api.Balance(ctx, r.ServiceToken, r.Organization)
	if err != nil {
		err = fmt.Errorf("cannot read the balance: %w", err)
	}
	return balance, err
}

// send posts at an even pace until the time is up. The end of ctx is no
// error, but a refusal is.
func (r *run) send(ctx context.Context) error {
	posts, ctx := errgroup.WithContext(ctx)
	posts.SetLimit(concurrent)
	pace := time.NewTicker(time.Minute / time.Duration(r.PerMinute))
	defer pace.Stop()
	show := time.NewTicker(r.Refresh)
	defer show.Stop()
	end := time.NewTimer(r.Duration)
	defer end.Stop()
	dice := newDice(r.Seed)
	for number, over := 1, false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-end.C:
			over = true
		case <-show.C:
			r.show()
		case <-pace.C:
			body, failures, err := pick(dice, services).batch(dice, time.Now())
			if err != nil {
				return err
			}
			batch := client.Batch{Body: body, IdempotencyKey: fmt.Sprintf("demo-%d-%d", r.begun.UnixNano(), number)}
			number++
			if !posts.TryGo(func() error { return r.post(ctx, batch, failures) }) {
				r.skipped++
			}
		}
	}
	err := posts.Wait()
	r.show()
	fmt.Fprintln(r.out)
	return err
}

// post delivers one batch and counts it. The end of ctx is no error.
func (r *run) post(ctx context.Context, batch client.Batch, failures int) error {
	begun := time.Now()
	accepted, err := r.api.Deliver(ctx, r.APIKey, batch)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot post a batch: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts++
	r.entries += accepted.Processed
	r.failures += failures
	r.bytes += accepted.BytesUsed
	r.took = append(r.took, time.Since(begun))
	return nil
}

// show writes one line of progress.
func (r *run) show() {
	const width = 30 // of the bar
	r.mu.Lock()
	defer r.mu.Unlock()
	elapsed := min(time.Since(r.begun), r.Duration)
	bar := strings.Repeat("#", min(width, int(elapsed*width/max(r.Duration, 1))))
	before, after := "", "\n"
	if r.Overwrite {
		before, after = "\r", ""
	}
	fmt.Fprintf(r.out, "%s[%-*s] %2.0f s  %d posts, %d entries, %d errors, %s, p50 %s p99 %s%s", before, width, bar,
		elapsed.Seconds(), r.posts, r.entries, r.failures, size(r.bytes), r.percentile(50), r.percentile(99), after)
}

// percentile formats a percentile of the answer times so far.
func (r *run) percentile(p int) string {
	if len(r.took) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(r.took))
	return sorted[(len(sorted)-1)*p/100].Round(100 * time.Microsecond).String()
}

// summarise waits a while until the balance shows all entries, then
// reports the results.
func (r *run) summarise(ctx context.Context, before client.Balance) error {
	const timeout, poll = 10 * time.Second, 50 * time.Millisecond
	var after client.Balance
	for deadline := time.Now().Add(timeout); ; time.Sleep(poll) {
		var err error
		if after, err = r.balance(ctx); err != nil {
			return err
		}
		if after.Accepted() >= before.Accepted()+r.bytes || time.Now().After(deadline) {
			break
		}
	}
	groups, err := r.api.ErrorGroups(ctx, r.APIKey, r.Project)
	if err != nil {
		return fmt.Errorf("cannot list the error groups: %w", err)
	}
	fmt.Fprintf(r.out, "\nSent %d posts with %d entries (%d errors); %d bytes were charged.\n", r.posts, r.entries, r.failures, r.bytes)
	if r.skipped > 0 {
		fmt.Fprintf(r.out, "%d posts were skipped, because %d others were still open.\n", r.skipped, concurrent)
	}
	fmt.Fprintf(r.out, "Balance: %d bytes accepted before, %d now, %s of %s remain (%s until %s).\n", before.Accepted(), after.Accepted(),
		size(after.Remaining), size(after.Granted), after.State, after.Period.End.Format(time.DateOnly))
	if missing := before.Accepted() + r.bytes - after.Accepted(); missing > 0 {
		fmt.Fprintf(r.out, "The balance does not show %d bytes yet.\n", missing)
	}
	showGroups(groups, r.out)
	return nil
}

func showGroups(groups []client.ErrorGroup, out io.Writer) {
	const shown = 20
	slices.SortFunc(groups, func(a, b client.ErrorGroup) int { return cmp.Compare(b.Count, a.Count) })
	fmt.Fprintf(out, "Error groups of the project: %d\n", len(groups))
	for _, group := range groups[:min(len(groups), shown)] {
		fmt.Fprintf(out, "  %6d  %-60.60s %.60s\n", group.Count, group.Title, group.Culprit)
	}
	if more := len(groups) - shown; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
}

// size formats bytes for people.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/(1<<30))
}
