package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/measure/entries"
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

// A run counts sent posts.
type run struct {
	Config
	api   *client.Client
	out   io.Writer
	begun time.Time
	took  measure.Samples

	mu       sync.Mutex // of all below
	random   *rand.Rand // sizes of batches
	from     *entries.Generator
	batches  int
	posts    int
	entries  int
	failures int // entries with an error
	bytes    int64
}

// Run sends traffic for the configured time, and writes progress, and
// at the end the balance and the groups, to out. It returns early,
// without an error, when ctx ends; accepted posts stay accepted.
func Run(ctx context.Context, api *client.Client, config Config, out io.Writer) error {
	r := &run{Config: config, api: api, out: out, begun: time.Now(), random: rand.New(rand.NewPCG(config.Seed, config.Seed)), from: entries.New(config.Seed)}
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
	const senders = 16 // enough that one that waits delays no other
	watched, over := context.WithCancel(ctx)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for lifecycle.Pause(watched, r.Refresh); watched.Err() == nil; lifecycle.Pause(watched, r.Refresh) {
			r.show()
		}
	}()
	load := measure.Load{Workers: senders, For: r.Duration, PerSecond: float64(r.PerMinute) / time.Minute.Seconds()}
	_, err := load.Run(ctx, func(ctx context.Context, _ int, _ time.Time) error { return r.post(ctx) })
	over()
	<-shown
	r.show()
	fmt.Fprintln(r.out)
	return err
}

// Sizes of a batch, in entries.
const (
	smallestBatch = 5
	largestBatch  = 60
)

// batch makes a body, the events of the last second, under a name of its own,
// and says how many of them are failures.
func (r *run) batch() (name string, body []byte, failures int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches++
	size, before := smallestBatch+r.random.IntN(largestBatch-smallestBatch+1), r.from.Errors
	body = r.from.AppendBody(nil, size, time.Now().Add(-time.Second), time.Second/time.Duration(size))
	return fmt.Sprintf("demo-%d-%d", r.begun.UnixNano(), r.batches), body, r.from.Errors - before
}

// post delivers one batch and counts it. The end of ctx is no error.
func (r *run) post(ctx context.Context) error {
	name, body, failures := r.batch()
	begun := time.Now()
	accepted, err := r.api.Deliver(ctx, r.APIKey, client.Batch{Body: body, IdempotencyKey: name})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot post a batch: %w", err)
	}
	r.took.Add(time.Since(begun))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts++
	r.entries += accepted.Processed
	r.failures += failures
	r.bytes += accepted.BytesUsed
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
	fmt.Fprintf(r.out, "%s[%-*s] %2.0f s  %d posts, %d entries, %d errors, %s, p50 / p99 %s%s", before, width, bar,
		elapsed.Seconds(), r.posts, r.entries, r.failures, size(r.bytes), measure.Millis(r.took.Percentiles(50, 99)...), after)
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
	value, unit := float64(bytes), 0
	for ; value >= 1<<10 && unit < 3; unit++ {
		value /= 1 << 10
	}
	return fmt.Sprintf("%.*f %s", min(unit, 1), value, []string{"B", "KB", "MB", "GB"}[unit])
}
